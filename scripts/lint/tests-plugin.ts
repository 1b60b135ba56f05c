/**
 * The rules for tests that `npm run check:lint` adds to those of oxlint: a test neither waits for a fixed time nor asserts
 * how long something took, because the machine that runs it may be slow or busy; and it replaces no modules.
 */

type Node = { readonly type: string; readonly [field: string]: unknown }
type Call = Node & { readonly callee: Node; readonly arguments: readonly Node[] }
type Import = {
  readonly source: { readonly value: string }
  readonly specifiers: readonly { readonly imported?: Node; readonly local: Node }[]
}
type Context = { report(problem: { readonly node: unknown; readonly message: string }): void }
type Visitor = Record<string, (node: never) => void>

/** Longer pauses between two steps of a test are waits. In milliseconds. */
const LONGEST_PAUSE_MS = 20

/** The dotted name of what an expression refers to, such as `performance.now`; empty for anything else. */
function nameOf(node: unknown): string {
  const { type, name, object, property } = (node ?? {}) as Node
  if (type === 'Identifier') return String(name)
  return type === 'MemberExpression' ? `${nameOf(object)}.${nameOf(property)}` : ''
}

const isCallOf = (node: unknown, name: string): boolean =>
  (node as Node | undefined)?.type === 'CallExpression' && nameOf((node as Call).callee) === name

const hasTimeLimit = (options: Node | undefined): boolean =>
  ((options?.['properties'] ?? []) as readonly Node[]).some(
    ({ key, value }) => nameOf(key) === 'timeout' && (value as Node).type === 'Literal',
  )

const sleep = {
  create(context: Context): Visitor {
    const timers = new Set(['setTimeout', 'globalThis.setTimeout'])
    const refuse = (node: unknown, message: string) => context.report({ node, message })
    return {
      ImportDeclaration({ source, specifiers }: Import) {
        if (source.value !== 'node:timers/promises') return
        for (const { imported, local } of specifiers)
          if (nameOf(imported) === 'setTimeout') timers.add(nameOf(local))
          else if (!imported) timers.add(`${nameOf(local)}.setTimeout`)
      },
      CallExpression(node: Call) {
        const name = nameOf(node.callee)
        if (timers.has(name))
          refuse(
            node,
            'A test waits for a condition, not for a time. Use expect.poll or until; for a slow party, takeTime.',
          )
        if (/^vi\.wait(For|Until)$/.test(name) && node.arguments.length < 2)
          refuse(node, 'This gives up after a second. Use expect.poll, which waits as long as all tests do.')
        if (name === 'expect.poll' && hasTimeLimit(node.arguments[1]))
          refuse(node, 'This limit is met on a fast machine only. Leave it out: all tests wait equally long.')
      },
      AwaitExpression({ argument }: { readonly argument: Node }) {
        if (!isCallOf(argument, 'takeTime')) return
        const [ms] = (argument as Call).arguments
        if (ms?.type === 'Literal' && Number(ms['value']) > LONGEST_PAUSE_MS)
          refuse(argument, 'A test waits for a condition, not for a time. Use expect.poll or until.')
      },
    }
  },
}

const CLOCKS = ['process.cpuUsage', 'process.hrtime', 'process.hrtime.bigint']
const DURATION = /\.(durationMs|duration_ms)$/

/** True for the time that has passed since: not for a moment that is computed from now. */
function isElapsed(node: Node, clock: string): boolean {
  const { type, operator, left, right } = node
  return type === 'BinaryExpression' && operator === '-' && isCallOf(left, clock) && (right as Node).type !== 'Literal'
}

/** Returns whether this, or anything in it, fits. */
function holds(node: unknown, fits: (node: Node) => boolean): boolean {
  if (Array.isArray(node)) return node.some((each) => holds(each, fits))
  if (typeof node !== 'object' || node === null) return false
  if (fits(node as Node)) return true
  return Object.entries(node).some(([field, value]) => field !== 'parent' && holds(value, fits))
}

const elapsed = {
  create(context: Context): Visitor {
    const found: unknown[] = []
    let hasOwnClock = false
    return {
      BinaryExpression(node: Node) {
        if (isElapsed(node, 'performance.now')) found.push(node)
      },
      CallExpression(node: Call) {
        const name = nameOf(node.callee)
        if (CLOCKS.includes(name)) found.push(node)
        if (name === 'vi.useFakeTimers') hasOwnClock = true
        if (name !== 'expect') return
        const [value] = node.arguments
        if (DURATION.test(nameOf(value)) || holds(value, (each) => isElapsed(each, 'Date.now'))) found.push(node)
      },
      'Program:exit'() {
        // A test with fake timers decides how long everything takes.
        if (hasOwnClock) return
        const message =
          'How long something takes depends on the machine. Give the code a clock, count steps, or compare two amounts of work with processorMsOf.'
        for (const node of found) context.report({ node, message })
      },
    }
  },
}

const concurrent = {
  create(context: Context): Visitor {
    const found: unknown[] = []
    let isConcurrent = false
    return {
      MemberExpression({ property }: Node) {
        if (nameOf(property) === 'concurrent') isConcurrent = true
      },
      CallExpression(node: Call) {
        if (nameOf(node.callee) === 'expect.poll') found.push(node)
      },
      'Program:exit'() {
        if (!isConcurrent) return
        const message =
          'When a test that runs at the same time ends, expect.poll does not know its test any more, and fails. Use until.'
        for (const node of found) context.report({ node, message })
      },
    }
  },
}

const modules = {
  create(context: Context): Visitor {
    const message =
      'Vitest replaces no modules here, and would silently not do this. Pass what the test needs to the code.'
    return {
      CallExpression(node: Call) {
        if (/^vi\.((do)?(un)?mock|hoisted)$/i.test(nameOf(node.callee))) context.report({ node, message })
      },
    }
  },
}

export default { meta: { name: 'tests' }, rules: { sleep, elapsed, concurrent, modules } }
