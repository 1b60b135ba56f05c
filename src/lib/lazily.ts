/** Creates a value on first use, once. */
export function lazily<T>(make: () => T): () => T {
  let lazyValue: { readonly value: T } | undefined
  return () => (lazyValue ??= { value: make() }).value
}
