/** Finds all that could be broken in one file. Types, imports, messages for the log and texts of errors are left alone. */
import { parseAst } from 'rolldown/parseAst'
import type { Node } from './operators.ts'
import { isNode, replacementsOf } from './operators.ts'

export type Mutant = {
  /** The file, a colon, and the number of the mutant in it. */
  readonly id: string
  /** The path from the root of the project. */
  readonly file: string
  readonly change: Range & { readonly text: string }
  /** The statement or expression around the change that is replaced as a whole. */
  readonly target: Range & { readonly kind: 'statement' | 'expression' }
  /** Whether it runs when the module is loaded, which happens once in a process. */
  readonly isStatic: boolean
}

type Range = { readonly start: number; readonly end: number }

/** Throws on a syntax error. */
export function findMutants(file: string, source: string): Mutant[] {
  const found = descend(parse(file, source), [], true).flatMap(({ node, path, isStatic }) => {
    const target = targetOf(node, path)
    const texts = new Set(target ? replacementsOf(node, path.at(-1), source) : [])
    const { start, end } = node
    return [...texts].map((text) => ({ file, change: { start, end, text }, target: target!, isStatic }))
  })
  return found.map((mutant, index) => ({ id: `${file}:${index}`, ...mutant }))
}

/** Returns true if the file with this mutant is still TypeScript. */
export function parses(mutant: Mutant, source: string): boolean {
  try {
    parse(mutant.file, mutated(mutant, source))
    return true
  } catch {
    return false
  }
}

/** The file with this mutant. */
export function mutated({ change }: Mutant, source: string): string {
  return source.slice(0, change.start) + change.text + source.slice(change.end)
}

function parse(file: string, source: string): Node {
  return parseAst(source, { lang: 'ts', preserveParens: false }, file) as unknown as Node
}

type Place = { readonly node: Node; readonly path: readonly Node[]; readonly isStatic: boolean }

/** All nodes of code that runs, each with those around it, the outermost first. */
function descend(node: Node, path: readonly Node[], isStatic: boolean): Place[] {
  if (isLeftAlone(node)) return []
  const inside = isStatic && !FUNCTIONS.has(node.type) && !isField(node)
  const children = Object.entries(node).flatMap(([field, child]) => {
    const nodes = isName(node, field) ? [] : [child].flat().filter(isNode)
    return nodes.flatMap((one) => descend(one, [...path, node], inside))
  })
  return [{ node, path, isStatic }, ...children]
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])
const IMPORTS = new Set(['ImportDeclaration', 'ExportAllDeclaration', 'ImportExpression'])
/** TypeScript's own nodes that have an expression in them; all others are erased with everything inside. */
const TYPED_EXPRESSIONS = new Set(['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression'])
const LOG_METHODS = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])

const isField = (node: Node): boolean => node.type === 'PropertyDefinition' && node['static'] !== true

/** Returns true where a change would affect no code that runs, or only a text for people who operate the server. */
function isLeftAlone(node: Node): boolean {
  if (IMPORTS.has(node.type)) return true
  if (node.type.startsWith('TS') && !TYPED_EXPRESSIONS.has(node.type)) return true
  if (typeof node['directive'] === 'string') return true
  if (isNeverReached(node)) return true
  if (node.type === 'ExpressionStatement') return isNode(node['expression']) && isLeftAlone(node['expression'])
  if (node.type === 'ChainExpression') return isLeftAlone(node['expression'] as Node)
  const callee = isNode(node['callee']) ? node['callee'] : undefined
  if (node.type === 'NewExpression') return /^(?:[A-Z]\w*)?Error$/.test(String(callee?.['name']))
  const method = node.type === 'CallExpression' && isNode(callee?.['property']) ? callee['property']['name'] : undefined
  return LOG_METHODS.has(String(method))
}

/** Types show that no value gets to `value satisfies never`, which makes a forgotten case a fault of the types. */
function isNeverReached(node: Node): boolean {
  if (node.type === 'ReturnStatement') return isNode(node['argument']) && isNeverReached(node['argument'])
  const type = node.type === 'TSSatisfiesExpression' ? node['typeAnnotation'] : undefined
  return isNode(type) && type.type === 'TSNeverKeyword'
}

/** Names are not values, and neither is the module of `export { a } from './b.ts'`. */
function isName(node: Node, field: string): boolean {
  return (
    (field === 'key' && node['computed'] !== true) || (node.type === 'ExportNamedDeclaration' && field === 'source')
  )
}

/** Statements that declare nothing which later ones need. */
const STATEMENTS = /^(?:Expression|Throw|Break|Continue|Block)Statement$/

/** The smallest node, itself or around it, that a choice between two can replace; undefined when there is none. */
function targetOf(node: Node, path: readonly Node[]): Mutant['target'] | undefined {
  const around = [...path, node]
  const found = around.findLast((one, index) => isReplaceable(one, around[index - 1]))
  if (!found) return undefined
  // A line that begins with a parenthesis would continue the one before it.
  const opened = path.find(({ type, start }) => type === 'ExpressionStatement' && start === found.start)
  const { type, start, end } = opened ?? found
  return { kind: STATEMENTS.test(type) ? 'statement' : 'expression', start, end }
}

function isReplaceable(node: Node, parent: Node | undefined): boolean {
  if (STATEMENTS.test(node.type)) return true
  if (!parent || !/Expression$|Literal$|^Identifier$/.test(node.type)) return false
  // `a.b()` calls with `a` as `this`, and in `a?.b.c` nothing after `a` runs when `a` is missing.
  const isPart = parent['callee'] === node || parent['object'] === node || parent['tag'] === node
  if (isPart || parent.type === 'ChainExpression' || parent.type === 'TSNonNullExpression') return false
  const isOperand = parent['left'] === node && parent.type === 'AssignmentExpression'
  return !isOperand && parent['quasi'] !== node && !/^(?:delete|typeof)$/.test(String(parent['operator']))
}
