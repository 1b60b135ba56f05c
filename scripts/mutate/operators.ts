/** What can take the place of one node of the syntax tree. Knows nothing of files or tests. */
import { mutateRegExp } from './regexp-operators.ts'

export type Node = {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

/** Returns the texts that can replace the node, each the result of one operator; `source` is the whole file. */
export function replacementsOf(node: Node, parent: Node | undefined, source: string): readonly string[] {
  return [...(parent ? byPlace(node, parent) : []), ...(BY_TYPE[node.type]?.(node, source) ?? [])]
}

export const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

/** Returns what follows from where the node is, whatever it is. */
function byPlace(node: Node, parent: Node): readonly string[] {
  if (parent['test'] === node && node.type !== 'Literal') {
    if (parent.type === 'IfStatement' || parent.type === 'ConditionalExpression') return ['true', 'false']
    // A loop with `true` would only never end.
    if (parent.type === 'WhileStatement' || parent.type === 'ForStatement') return ['false']
  }
  if (parent['body'] === node && EMPTIED.has(parent.type)) {
    if (node.type !== 'BlockStatement') return isUndefined(node) ? [] : ['undefined']
    return nodesOf(node['body']).length === 0 ? [] : ['{}']
  }
  return parent.type === 'ReturnStatement' && !isUndefined(node) ? ['undefined'] : []
}

const EMPTIED = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  'ForOfStatement',
  'CatchClause',
])

const isUndefined = (node: Node): boolean => node.type === 'Identifier' && node['name'] === 'undefined'

const BY_TYPE: Readonly<Record<string, (node: Node, source: string) => readonly string[]>> = {
  ExpressionStatement: withoutStatement,
  ThrowStatement: () => ['{}'],
  BreakStatement: () => ['{}'],
  ContinueStatement: () => ['{}'],
  BinaryExpression: binary,
  LogicalExpression: logical,
  AssignmentExpression: assignment,
  UpdateExpression: (node, source) => [
    textOf(node, source).replace(/\+\+|--/, (sign) => (sign === '++' ? '--' : '++')),
  ],
  UnaryExpression: unary,
  Literal: literal,
  TemplateLiteral: (node, source) => (textOf(node, source) === '``' ? [] : ['``']),
  ArrayExpression: (node) => (nodesOf(node['elements']).length === 0 ? [] : ['[]']),
  ObjectExpression: object,
  ChainExpression: chain,
  CallExpression: call,
}

const textOf = ({ start, end }: Node, source: string): string => source.slice(start, end)

const nodesOf = (value: unknown): readonly Node[] => (Array.isArray(value) ? value.filter(isNode) : [])

function withoutStatement({ expression }: Node): readonly string[] {
  const callee = isNode(expression) && isNode(expression['callee']) ? expression['callee'].type : undefined
  // A class would not run at all without it.
  return callee === 'Super' ? [] : ['{}']
}

const BINARY: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&': ['|'],
  '|': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '>>>': ['<<'],
}
const LOGICAL: Readonly<Record<string, string>> = { '&&': '||', '||': '&&', '??': '&&' }
const ASSIGNMENT: Readonly<Record<string, string>> = { '+=': '-=', '-=': '+=', '??=': '=', '||=': '=', '&&=': '=' }

function binary(node: Node, source: string): readonly string[] {
  // Texts are joined, not added.
  if (node['operator'] === '+' && isText(node)) return []
  return (BINARY[String(node['operator'])] ?? []).flatMap((other) => {
    const parts = operandsOf(node, source)
    return parts ? [`${parts[0]} ${other} ${parts[1]}`] : []
  })
}

function isText(node: unknown): boolean {
  if (!isNode(node)) return false
  if (node.type === 'BinaryExpression') return isText(node['left']) || isText(node['right'])
  return node.type === 'TemplateLiteral' || typeof node['value'] === 'string'
}

/** Adds parentheses, because `a && b || c` is another tree, and `??` next to `&&` is a syntax error. */
function logical(node: Node, source: string): readonly string[] {
  const parts = operandsOf(node, source)
  return parts ? [`((${parts[0]}) ${LOGICAL[String(node['operator'])]} (${parts[1]}))`] : []
}

function assignment(node: Node, source: string): readonly string[] {
  const other = ASSIGNMENT[String(node['operator'])]
  const parts = operandsOf(node, source)
  return other !== undefined && parts ? [`${parts[0]} ${other} ${parts[1]}`] : []
}

/** The texts before and after the operator. */
function operandsOf(node: Node, source: string): [before: string, after: string] | undefined {
  const { left, right } = node
  if (!isNode(left) || !isNode(right)) return undefined
  const operator = String(node['operator'])
  const at = source.indexOf(operator, left.end)
  if (at === -1 || at >= right.start) return undefined
  return [source.slice(node.start, at).trimEnd(), source.slice(at + operator.length, node.end).trimStart()]
}

function unary({ operator, argument }: Node, source: string): readonly string[] {
  const isRemoved = operator === '!' || operator === '-' || operator === '~'
  return isRemoved && isNode(argument) ? [`(${textOf(argument, source)})`] : []
}

function literal({ value, regex }: Node): readonly string[] {
  if (typeof value === 'boolean') return [String(!value)]
  if (typeof value === 'string') return [value === '' ? "'mutant'" : "''"]
  if (typeof regex !== 'object' || regex === null) return []
  const { pattern, flags } = regex as { readonly pattern: string; readonly flags: string }
  return mutateRegExp(pattern, flags)
}

/** Removes all properties, and each of them, as one who adds a property can forget it. */
function object(node: Node, source: string): readonly string[] {
  const properties = nodesOf(node['properties'])
  if (properties.length < 2) return properties.length === 0 ? [] : ['{}']
  const without = properties.map((left) => {
    const kept = properties.filter((property) => property !== left)
    return `{ ${kept.map((property) => textOf(property, source)).join(', ')} }`
  })
  return ['{}', ...without]
}

/** `a?.b` becomes `a.b`, one `?.` at a time. */
function chain(node: Node, source: string): readonly string[] {
  const texts: string[] = []
  let part: unknown = node['expression']
  while (isNode(part)) {
    const inner: unknown =
      part['object'] ?? part['callee'] ?? (part.type === 'TSNonNullExpression' && part['expression'])
    if (part['optional'] === true && isNode(inner)) {
      const at = source.indexOf('?.', inner.end)
      const instead = /[[(]/.test(source[at + 2] ?? '') ? '' : '.'
      texts.push(source.slice(node.start, at) + instead + source.slice(at + 2, node.end))
    }
    part = inner
  }
  return texts
}

/** Methods whose call is replaced by what they are called on. */
const LEFT_OUT = new Set(
  'filter slice trim trimEnd trimStart sort toSorted reverse toReversed toLowerCase toUpperCase concat flat'.split(' '),
)
const OPPOSITE = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['startsWith', 'endsWith'],
  ['endsWith', 'startsWith'],
  ['min', 'max'],
  ['max', 'min'],
])

function call(node: Node, source: string): readonly string[] {
  const { callee } = node
  if (!isNode(callee) || callee.type !== 'MemberExpression' || callee['computed'] === true) return []
  const { object: receiver, property } = callee
  if (!isNode(receiver) || !isNode(property)) return []
  const name = String(property['name'])
  if (LEFT_OUT.has(name)) return [`(${textOf(receiver, source)})`]
  const opposite = OPPOSITE.get(name)
  if (opposite === undefined) return []
  return [source.slice(node.start, property.start) + opposite + source.slice(property.end, node.end)]
}
