/** Finds bare participles as the names of parameters, local variables and functions. Parses the source, unlike `prose.ts`. */
import { parseAst } from 'rolldown/parseAst'
import type { Finding } from './prose.ts'
import { PARTICIPLES } from './prose.ts'
import type { Node } from './mutate/operators.ts'
import { isNode } from './mutate/operators.ts'
import { descend, lineCounter } from './source-measures.ts'

/** A verb where it names a function, as in `read(path)`; only a type checker could tell. */
const VERB = 'read'

const NOUNS: ReadonlySet<string> = new Set([VERB, 'need', 'feed', 'seed', 'speed', 'proceed', 'succeed', 'exceed'])

const BARE = new RegExp(`^(?:${PARTICIPLES})$`)

const FUNCTIONS: ReadonlySet<string> = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/**
 * Returns the bare participles that the source declares as parameters, variables and functions. A name that a pattern
 * takes from a field of the same name, as in `{ archived }`, is a name of that field; `findBareNames` finds exports.
 * Throws on a syntax error.
 */
export function findBareLocals(text: string, path: string): Finding[] {
  const lineAt = lineCounter(text)
  const tree = parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' }, path)
  const nodes = Array.from(descend(tree), ([node]) => node)
  const exports = new Set<unknown>(nodes.flatMap(exportedBy))
  return nodes
    .flatMap((node) => (exports.has(node) ? [] : declaredBy(node)))
    .flatMap(({ name, start, end }) => {
      const found = String(name)
      if (!BARE.test(found) || NOUNS.has(found)) return []
      const context = text.slice(Math.max(0, start - 40), end + 40).replaceAll(/\s+/g, ' ')
      return [{ line: lineAt(start), found, context, instead: 'a noun with it: keptKeys, remainingBytes' }]
    })
}

/** Returns the functions and variables that an export declares. */
function exportedBy(node: Node): unknown[] {
  const declaration = node['declaration']
  if (node.type !== 'ExportNamedDeclaration' || !isNode(declaration)) return []
  return declaration.type === 'VariableDeclaration' ? [...listOf(declaration['declarations'])] : [declaration]
}

/** Returns the identifiers that a node declares itself. */
function declaredBy(node: Node): Node[] {
  if (node.type === 'VariableDeclarator') return namesIn(node['id'])
  if (node.type === 'CatchClause') return namesIn(node['param'])
  if (!FUNCTIONS.has(node.type)) return []
  const own = isNode(node['id']) ? [node['id']] : []
  return [...own, ...listOf(node['params']).flatMap(namesIn)]
}

/** Returns the identifiers that a pattern binds, without those that have the name of their field. */
function namesIn(pattern: unknown): Node[] {
  if (!isNode(pattern)) return []
  switch (pattern.type) {
    case 'Identifier':
      return [pattern]
    case 'AssignmentPattern':
      return namesIn(pattern['left'])
    case 'RestElement':
      return namesIn(pattern['argument'])
    case 'TSParameterProperty':
      return namesIn(pattern['parameter'])
    case 'ArrayPattern':
      return listOf(pattern['elements']).flatMap(namesIn)
    case 'ObjectPattern':
      return listOf(pattern['properties']).flatMap((property) =>
        isNode(property) && property.type === 'Property'
          ? property['shorthand'] === true
            ? []
            : namesIn(property['value'])
          : namesIn(property),
      )
    default:
      return []
  }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
