// The lock: command lines and users need a token, even on loopback, as any local user can reach that.
import { dialog, h, text } from './dom.js';

export function lockDialog(ctx, changed) {
  const said = h('p', { class: 'note', role: 'alert', hidden: true });
  const input = h('input', {
    type: 'password',
    'aria-label': 'Token',
    placeholder: 'paste the token',
    autocomplete: 'off',
    onkeydown: (event) => event.key === 'Enter' && open(),
  });
  const folder = ctx.status?.path ?? 'the data folder';
  const open = async () => {
    try {
      await ctx.api.session({ token: input.value.trim() });
      box.close();
      changed();
    } catch (error) {
      said.hidden = false;
      text(said, error.message);
    }
  };
  const forget = () => {
    ctx.api.forget();
    box.close();
    changed();
  };
  const state = ctx.hasTexts()
    ? 'This page may show command lines, users and cgroups.'
    : 'This page shows numbers and process names only. Command lines, users and cgroups need a token.';
  const box = dialog(
    'Access',
    h('p', {}, state),
    h(
      'p',
      {},
      'Open the address that kymo printed on its terminal, or paste the token from the file ',
      h('code', {}, `${folder}/token`),
      '.',
    ),
    said,
    h(
      'div',
      { class: 'row' },
      input,
      h('button', { class: 'main', onclick: open }, 'Unlock'),
      ctx.api.hasToken() ? h('button', { onclick: forget }, 'Forget the token') : null,
    ),
  );
}
