// Where the page's files are, for all tests.
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const FOLDER = fileURLToPath(new URL('../../crates/serve/assets/', import.meta.url));
export const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
  .map((each) => `${each.parentPath ?? each.path}/${each.name}`.replace(/\/+/g, '/').slice(FOLDER.length));
export const read = (name) => readFileSync(FOLDER + name);
