/**
 * The rule for timers that `npm run check:lint` adds to those of oxlint: a computed duration may be negative, not a number,
 * or too long, and Node warns of it and uses a millisecond.
 */

type Expression = {
  readonly type: string
  readonly name?: string
  readonly callee?: Expression
  readonly object?: Expression
  readonly property?: Expression
}
type Call = Expression & { readonly callee: Expression; readonly arguments: readonly Expression[] }
type Import = {
  readonly source: { readonly value: string }
  readonly specifiers: readonly {
    readonly imported?: { readonly name: string }
    readonly local: { readonly name: string }
  }[]
}
type Context = { report(problem: { readonly node: unknown; readonly message: string }): void }

/** The place of the duration among the arguments, by the name of the function. */
const TIMERS = { setTimeout: 1, setInterval: 1 }
const COMPUTED = /^(?:Binary|Call|Unary|Update|Assignment)Expression$/

function durationOf({ callee, arguments: given }: Call, places: ReadonlyMap<string, number>): Expression | undefined {
  if (callee.object?.name === 'AbortSignal' && callee.property?.name === 'timeout') return given[0]
  const place = places.get(callee.name ?? '')
  return place === undefined ? undefined : given[place]
}

const bounded = {
  create(context: Context): Record<string, (node: never) => void> {
    const places = new Map(Object.entries(TIMERS))
    return {
      ImportDeclaration({ source, specifiers }: Import) {
        if (source.value !== 'node:timers/promises') return
        for (const { imported, local } of specifiers) if (imported && imported.name in TIMERS) places.set(local.name, 0)
      },
      CallExpression(node: Call) {
        const duration = durationOf(node, places)
        if (!duration || !COMPUTED.test(duration.type) || duration.callee?.name === 'timerMs') return
        context.report({
          node,
          message: 'The duration is computed. Pass it through timerMs of src/lib/bounded-wait.ts.',
        })
      },
    }
  },
}

export default { meta: { name: 'timers' }, rules: { bounded } }
