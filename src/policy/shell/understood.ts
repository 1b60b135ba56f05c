/**
 * The only file that says which nodes of the parser the gate understands, and what each of them holds. A type or a
 * property that is not in the table does not compile; at run time, it makes the whole line one that is not understood.
 */
import type { SyntaxNode } from 'unbash'

type NodeType = SyntaxNode['type']
type NodeOf<T extends NodeType> = Extract<SyntaxNode, { readonly type: T }>
type KeyOf<N> = N extends unknown ? Exclude<keyof N, 'type' | 'pos' | 'end'> : never
type ValueOf<N, K> = N extends unknown ? (K extends keyof N ? N[K] : undefined) : never
type Item<V> = V extends readonly (infer E)[] ? E : V

/** `read`: nodes that are looked into. `repeated`: the same nodes again. `plain`: no nodes. */
type Position<V> = [Extract<Item<V>, { readonly type: NodeType }>] extends [never] ? 'plain' : 'read' | 'repeated'
type Positions = { readonly [T in NodeType]: { readonly [K in KeyOf<NodeOf<T>>]: Position<ValueOf<NodeOf<T>, K>> } }

const TEXT = { text: 'plain', value: 'plain' } as const
const OPERATION = { operator: 'plain', operatorEnd: 'plain' } as const
const SUBSTITUTION = { text: 'plain', script: 'read' } as const
const PIECES = { text: 'plain', parts: 'read' } as const

/** The positions are in the order in which they are read. */
export const UNDERSTOOD: Positions = {
  AndOr: { commands: 'read', operators: 'plain' },
  AnsiCQuoted: TEXT,
  ArithmeticBinary: { left: 'read', operator: 'plain', right: 'read' },
  ArithmeticCommand: { body: 'plain', expression: 'read' },
  ArithmeticCommandExpansion: SUBSTITUTION,
  ArithmeticExpansion: { text: 'plain', expression: 'read' },
  ArithmeticFor: { initialize: 'read', test: 'read', update: 'read', body: 'read' },
  ArithmeticGroup: { expression: 'read' },
  ArithmeticTernary: { test: 'read', consequent: 'read', alternate: 'read' },
  ArithmeticUnary: { operator: 'plain', operand: 'read', prefix: 'plain' },
  ArithmeticWord: { value: 'plain', parts: 'read' },
  ArrayValue: { elements: 'read' },
  Assignment: { text: 'plain', name: 'plain', append: 'plain', index: 'read', value: 'read' },
  BraceExpansion: PIECES,
  BraceGroup: { body: 'read' },
  Case: { word: 'read', items: 'read' },
  CaseItem: { pattern: 'read', body: 'read', terminator: 'plain' },
  CaseModification: { ...OPERATION, operand: 'read' },
  Command: { prefix: 'read', name: 'read', suffix: 'read', args: 'repeated', redirects: 'repeated' },
  CommandExpansion: SUBSTITUTION,
  CompoundList: { commands: 'read' },
  Coproc: { name: 'read', body: 'read' },
  Default: { ...OPERATION, operand: 'read' },
  DoubleQuoted: PIECES,
  // oxlint-disable-next-line unicorn/no-thenable -- the name of the parser; the table is never awaited
  Elif: { clause: 'read', then: 'read' },
  ExtendedGlob: { ...PIECES, operator: 'plain', pattern: 'plain' },
  FileDescriptor: { value: 'plain' },
  FileDescriptorVariable: { name: 'plain' },
  For: { name: 'read', wordlist: 'read', body: 'read' },
  Function: { name: 'read', body: 'read' },
  Glob: { ...TEXT, kind: 'plain', parts: 'read' },
  HereDoc: { operator: 'plain', descriptor: 'read', delimiter: 'read', body: 'read', closing: 'plain' },
  HereDocBody: PIECES,
  HereDocDelimiter: { ...TEXT, quoted: 'plain' },
  HereString: { operator: 'plain', descriptor: 'read', target: 'read' },
  // oxlint-disable-next-line unicorn/no-thenable -- the name of the parser; the table is never awaited
  If: { clause: 'read', then: 'read', elif: 'read', else: 'read' },
  Literal: TEXT,
  LocaleString: PIECES,
  Names: OPERATION,
  Negation: {},
  ParameterExpansion: {
    text: 'plain',
    parameter: 'plain',
    parameterPos: 'plain',
    parameterEnd: 'plain',
    prefix: 'plain',
    index: 'read',
    operation: 'read',
  },
  Pipeline: { prefixes: 'read', commands: 'read', operators: 'plain' },
  ProcessSubstitution: { ...SUBSTITUTION, operator: 'plain' },
  Redirect: { operator: 'plain', descriptor: 'read', target: 'read' },
  Redirected: { command: 'read', redirects: 'read' },
  Remove: { ...OPERATION, operand: 'read' },
  Replace: { ...OPERATION, pattern: 'read', replacement: 'read' },
  Script: { shebang: 'plain', commands: 'read', source: 'plain', errors: 'plain' },
  Select: { name: 'read', wordlist: 'read', body: 'read' },
  SimpleExpansion: { text: 'plain' },
  SingleQuoted: TEXT,
  Slice: { ...OPERATION, offset: 'read', length: 'read' },
  Statement: { command: 'read', background: 'plain' },
  Subshell: { body: 'read' },
  TestBinary: { operator: 'plain', left: 'read', right: 'read' },
  TestCommand: { expression: 'read' },
  TestGroup: { expression: 'read' },
  TestLogical: { operator: 'plain', operands: 'read' },
  TestNot: { negations: 'read', operand: 'read' },
  TestUnary: { operator: 'plain', operand: 'read' },
  Time: { keywordEnd: 'plain', posix: 'plain', endOfOptions: 'plain' },
  Transform: { ...OPERATION, operand: 'read' },
  Unknown: OPERATION,
  While: { kind: 'plain', clause: 'read', body: 'read' },
  Word: { ...TEXT, parts: 'read' },
}

/** Returns what the node holds, in order; undefined for a node that is not understood. */
export function childrenOf(node: SyntaxNode): readonly SyntaxNode[] | undefined {
  if (!Object.hasOwn(UNDERSTOOD, node.type)) return undefined
  const positions: Readonly<Record<string, 'read' | 'repeated' | 'plain'>> = UNDERSTOOD[node.type]
  // A loop, because a long word has thousands of nodes.
  for (const key of Object.keys(node)) if (!Object.hasOwn(positions, key) && !OF_EACH.has(key)) return undefined
  const children: SyntaxNode[] = []
  for (const [key, position] of Object.entries(positions)) {
    if (position !== 'read') continue
    // Some of them are getters of a class.
    const value: unknown = Reflect.get(node, key)
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (child === undefined) continue
      if (!isNode(child)) return undefined
      children.push(child)
    }
  }
  return children
}

const OF_EACH: ReadonlySet<string> = new Set(['type', 'pos', 'end'])

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
