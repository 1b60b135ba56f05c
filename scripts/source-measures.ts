/** Measures TypeScript sources: lengths of files and functions, assertions and exported types. Knows no limits. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { parseAst } from 'rolldown/parseAst'

export type MeasuredFile = {
  /** The path from the measured folder, such as `http/server.ts`. */
  readonly path: string
  readonly lines: number
  /** The lines after the imports. */
  readonly ownLines: number
  readonly functions: readonly MeasuredFunction[]
  /** Assertions with `!`. */
  readonly nonNull: number
  /** Assertions with `as`; `as const` asserts nothing and does not count. */
  readonly casts: number
  readonly exportedTypes: readonly string[]
}

/** A declaration, a method, or a function that is assigned to a name. Callbacks belong to the function around them. */
export type MeasuredFunction = { readonly name: string; readonly line: number; readonly lines: number }

export type FolderMeasure = { readonly path: string; readonly files: number; readonly lines: number }

export function measureFolder(root: string): MeasuredFile[] {
  const paths = globSync('**/*.{ts,tsx}', { cwd: root }).toSorted()
  return paths.map((path) => measureSource(path, readFileSync(join(root, path), 'utf8')))
}

/** Throws on a syntax error. */
export function measureSource(path: string, text: string): MeasuredFile {
  const lineAt = lineCounter(text)
  const functions: MeasuredFunction[] = []
  const exportedTypes: string[] = []
  let nonNull = 0
  let casts = 0
  let lastImport = 0
  const tree = parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' }, path)
  for (const [node, parent] of descend(tree)) {
    if (FUNCTIONS.has(node.type) && isNode(node['body'])) {
      const name = nameOf(node, parent)
      const [first, last] = [lineAt(node.start), lineAt(node.end)]
      if (name !== undefined) functions.push({ name, line: first, lines: last - first + 1 })
    }
    if (node.type === 'ImportDeclaration') lastImport = lineAt(node.end)
    if (node.type === 'TSNonNullExpression') nonNull++
    if (node.type === 'TSAsExpression' && !isConst(node)) casts++
    if (node.type === 'ExportNamedDeclaration') exportedTypes.push(...declaredTypes(node['declaration']))
  }
  const lines = lineAt(text.trimEnd().length)
  return { path, lines, ownLines: lines - lastImport, functions, nonNull, casts, exportedTypes }
}

/** Each folder with the files that lie directly in it. */
export function foldersOf(files: readonly MeasuredFile[]): FolderMeasure[] {
  const byFolder = Map.groupBy(files, ({ path }) => dirname(path))
  const folders = [...byFolder].map(([path, inside]) => ({
    path,
    files: inside.length,
    lines: inside.reduce((sum, { lines }) => sum + lines, 0),
  }))
  return folders.toSorted((one, other) => (one.path < other.path ? -1 : 1))
}

/** The names of types that more than one file exports, each with its files. */
export function repeatedTypes(files: readonly MeasuredFile[]): Map<string, readonly string[]> {
  const exports = files.flatMap(({ path, exportedTypes }) =>
    [...new Set(exportedTypes)].map((name) => ({ name, path })),
  )
  const byName = Map.groupBy(exports, ({ name }) => name)
  return new Map(
    [...byName].filter(([, all]) => all.length > 1).map(([name, all]) => [name, all.map(({ path }) => path)]),
  )
}

/** The smallest value that is at least as large as this share of all; 0 of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
}

type Node = { readonly type: string; readonly start: number; readonly end: number; readonly [field: string]: unknown }

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])
const NAMING = new Set(['MethodDefinition', 'PropertyDefinition', 'Property', 'VariableDeclarator'])
const TYPES = new Set(['TSTypeAliasDeclaration', 'TSInterfaceDeclaration', 'TSEnumDeclaration', 'ClassDeclaration'])

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

export function* descend(value: unknown, parent?: Node): Generator<[node: Node, parent: Node | undefined]> {
  if (Array.isArray(value)) for (const item of value) yield* descend(item, parent)
  else if (isNode(value)) {
    yield [value, parent]
    for (const child of Object.values(value)) yield* descend(child, value)
  }
}

function nameOf(node: Node, parent: Node | undefined): string | undefined {
  if (isNode(node['id'])) return identifier(node['id'])
  return parent && NAMING.has(parent.type) ? identifier(parent['key'] ?? parent['id']) : undefined
}

const identifier = (node: unknown): string => (isNode(node) ? String(node['name'] ?? node['value']) : '')

function isConst({ typeAnnotation }: Node): boolean {
  return isNode(typeAnnotation) && identifier(typeAnnotation['typeName']) === 'const'
}

function declaredTypes(declaration: unknown): string[] {
  return isNode(declaration) && TYPES.has(declaration.type) ? [identifier(declaration['id'])] : []
}

/** Line numbers from 1, of offsets in the text. */
export function lineCounter(text: string): (offset: number) => number {
  const starts = [...text.matchAll(/\n/g)].map(({ index }) => index + 1)
  return (offset) => {
    let [low, high] = [0, starts.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((starts[middle] ?? Infinity) <= offset) low = middle + 1
      else high = middle
    }
    return low + 1
  }
}
