/** Returns the methods of a path, which distinguishes "no such route" from "method not allowed". */
import type { RouteOptions } from 'fastify'
import { lazily } from '../lib/lazily.ts'

export type RouteTable = {
  readonly add: (route: Pick<RouteOptions, 'url' | 'method'>) => void
  /** Sorted; empty if no route has this path. */
  readonly methodsOf: (url: string) => string[]
}

export function createRouteTable(): RouteTable {
  const methods = new Map<string, { pattern: () => RegExp; methods: Set<string> }>()

  return {
    add({ url, method }) {
      // This is the preflight handler, not one of our routes.
      if (url === '*') return
      const knownRoute = methods.get(url) ?? { pattern: lazily(() => patternOf(url)), methods: new Set<string>() }
      for (const name of [method].flat()) knownRoute.methods.add(name)
      methods.set(url, knownRoute)
    },
    methodsOf(url) {
      const [path = ''] = url.split('?', 1)
      return [
        ...new Set(
          [...methods.values()].filter(({ pattern }) => pattern().test(path)).flatMap((route) => [...route.methods]),
        ),
      ].sort()
    },
  }
}

function patternOf(url: string): RegExp {
  const parts = url.split('/').map((part) => {
    // Two colons are one that begins no parameter.
    const name = part.replaceAll('::', ':')
    return part.startsWith(':') ? '[^/]+' : part === '*' ? '.*' : RegExp.escape(name)
  })
  // oxlint-disable-next-line regexp/built -- names between slashes, and one `.*` at the end
  return new RegExp(`^${parts.join('/')}/?$`)
}
