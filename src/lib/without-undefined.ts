/** Omits unset fields: absent and undefined fields are different types here, and optional inputs are undefined. */

type Present<T> = { [K in keyof T]: Exclude<T[K], undefined> }

export function withoutUndefined<T extends object>(record: T): Present<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is undefined was left out
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Present<T>
}
