/** Names of the SDK are in camel case, and those of the wire in snake case: the types and the conversion of one object. */

export type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<CamelCase<Rest>>}`
  : Name

/** The same object with names in camel case. Its values are unchanged. */
export type CamelizedFields<T> = { readonly [Name in keyof T as Name extends string ? CamelCase<Name> : Name]: T[Name] }

export const toCamelCase = (name: string): string =>
  name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Renames the fields of one object, not those of its values. Absent fields stay absent. */
export function toSnakeCase(record: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]],
    ),
  )
}
