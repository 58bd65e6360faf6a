import { launch, open } from './browser/open.js';
const base=process.argv[2] ?? 'http://127.0.14.1:4280/';
const shots=JSON.parse(process.argv[3]);
const b=await launch();
for (const [name,path,dark,width,height] of shots) {
  const { page, seen, context } = await open(b, base, { path, dark, width: width??1440, height: height??1000 });
  await page.waitForTimeout(2500);
  await page.screenshot({ path: `/tmp/h4/${name}.png`, fullPage: true });
  console.log(name, JSON.stringify({...seen, foreign: []}));
  await context.close();
}
await b.close();
