// Search among all fields: every word must be found in the name, the unit or the help.

/** All fields as `{id, unit, help, text}`; those of instances once as `:*` and once each. */
export function catalogue(subsystems) {
  const found = [];
  const add = (id, column, about) =>
    found.push({
      id,
      unit: column.unit,
      help: column.help,
      subsystem: about.name,
      text: `${id} ${column.unit} ${column.help}`.toLowerCase(),
      about: about.help.toLowerCase(),
    });
  for (const about of subsystems) {
    for (const column of about.columns) add(`${about.name}.${column.name}`, column, about);
    for (const column of about.each) {
      if (!about.instances.length) continue;
      add(`${about.name}.${column.name}:*`, column, about);
      for (const instance of about.instances) add(`${about.name}.${column.name}:${instance}`, column, about);
    }
  }
  return found;
}

/**
 * Best first: a name that begins with the first word, then one that holds it, then the rest. What the subsystem is
 * about counts where nothing else is found.
 */
export function search(fields, wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return fields;
  const found = fields.filter(({ text }) => words.every((word) => text.includes(word)));
  const any = found.length
    ? found
    : fields.filter(({ text, about }) => words.every((word) => text.includes(word) || about.includes(word)));
  return any
    .map((field, n) => [rank(field, words[0]), n, field])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1])
    .map(([, , field]) => field);
}

function rank({ id }, word) {
  const name = id.toLowerCase();
  if (name.startsWith(word) || name.includes(`.${word}`)) return 0;
  return name.includes(word) ? 1 : 2;
}

/** Lines of a chart of the overview. */
const OVERVIEW_LINES = 4;

/** A panel of each subsystem that is recorded: its first fields, of one unit. */
export function overview(subsystems) {
  return subsystems
    .filter((about) => about.recorded)
    .flatMap((about) => {
      const all = about.columns.length ? about.columns : about.each;
      const instances = about.columns.length ? '' : ':*';
      if (!all.length || (instances && !about.instances.length)) return [];
      const columns = instances
        ? all.slice(0, 1)
        : all.filter(({ unit }) => unit === all[0].unit).slice(0, OVERVIEW_LINES);
      const layers = columns.map(({ name }, n) => ({
        id: `${about.name}.${name}${instances}`,
        label: instances ? '' : name,
        colour: n + 1,
      }));
      return [
        {
          id: `over-${about.name}`,
          title: about.name,
          note: about.help,
          least: 0,
          layers,
          known: instances ? { most: 8 } : undefined,
        },
      ];
    });
}
