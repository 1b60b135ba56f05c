/** Lists the names under which a model is looked up: vendors and gateways write the same one differently. */

/** Returns the keys of a name, the most exact first: a dated name is its model, and a tag says how it is served. */
export function keysOf(name: string): string[] {
  const whole = keyOf(name)
  const tag = whole.slice(whole.lastIndexOf('/') + 1).search(/[:@]/)
  const withoutTag = tag < 0 ? whole : whole.slice(0, whole.lastIndexOf('/') + 1 + tag)
  const withoutDate = withoutTag.replace(DATE, '')
  return [...new Set([whole, withoutTag, withoutDate])]
}

const DATE = /-(\d{8}|\d{4}-\d\d-\d\d|latest)$/

/** `claude-opus-4.5` is `claude-opus-4-5` at its vendor. */
export const keyOf = (name: string): string => name.toLowerCase().replaceAll('.', '-')

/** `provider/vendor/Model-Name` -> `Model-Name` */
export const baseName = (model: string): string => model.slice(model.lastIndexOf('/') + 1)
