/** An object as it is, but for some of its members: also one of a class with private state, which cannot be spread. */
export function override<T extends object>(real: T, changes: Partial<T>): T {
  return new Proxy(real, {
    get(target, name) {
      if (name in changes) return Reflect.get(changes, name) as unknown
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}
