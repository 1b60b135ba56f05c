/** Work that is done once for all who need its result. */

/** Creates a value on first use, once. */
export function lazily<T>(make: () => T): () => T {
  let lazyValue: { readonly value: T } | undefined
  return () => (lazyValue ??= { value: make() }).value
}

/** Creates a value for each object on first use, once, and keeps it as long as the object. Nothing may change the object. */
export function lazilyForEach<K extends object, V extends object>(make: (key: K) => V): (key: K) => V {
  const values = new WeakMap<K, V>()
  return (key) => {
    let value = values.get(key)
    if (value === undefined) values.set(key, (value = make(key)))
    return value
  }
}

/**
 * Returns a function whose work begins after its call, as that of `work` does. Calls that come while the work is active
 * share the next one, so that many of them cost two.
 */
export function shareNext(work: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined
  const begin = () => {
    next = undefined
    const begunCall = work().finally(() => {
      if (current === begunCall) current = undefined
    })
    return (current = begunCall)
  }
  return () => {
    if (!current) return begin()
    return (next ??= current.then(begin, begin))
  }
}
