/** Reads what a source file imports and what of the process it touches, from the parsed file; knows no rules. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { parseAst } from 'rolldown/parseAst'

export type SourceFile = {
  /** From `src/`, such as `http/server.ts`. */
  readonly path: string
  /** Path of our own file, or the name of a package or built-in; every way to import, type-only ones too. */
  readonly imports: readonly string[]
  /** Those of `imports` that are more than types: loading this file loads them, at once or later. */
  readonly loads: readonly string[]
  /** Those of `loads` that an `import()` loads, when it is reached. */
  readonly defers: readonly string[]
  readonly readsEnvironment: boolean
  /** Re-exports and nothing else. */
  readonly isBarrel: boolean
}

export function readSources(root: string): SourceFile[] {
  return pathsIn(root, /\.tsx?$/).map((path) => parseSource(path, readFileSync(join(root, path), 'utf8')))
}

/** Without the parts of the page, which throw no `Problem`. */
export const sourcePaths = (root: string): string[] => pathsIn(root, /\.ts$/)

const pathsIn = (root: string, name: RegExp): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => name.test(path))

/** Throws on a syntax error. */
export function parseSource(path: string, text: string): SourceFile {
  const program = parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' }, path) as unknown as Node & {
    body: Node[]
  }
  const nodes = descend(program)
  const targetsOf = (all: readonly Node[]) =>
    [...new Set(all.flatMap(specifierOf))].map((specifier) => target(path, specifier))
  return {
    path,
    imports: targetsOf(nodes),
    loads: targetsOf(nodes.filter((node) => !isOfTypes(node))),
    defers: targetsOf(nodes.filter(({ type }) => type === 'ImportExpression')),
    readsEnvironment: nodes.some(isEnvironment),
    isBarrel:
      program.body.length > 0 && program.body.every((node) => node.type.startsWith('Export') && isNode(node['source'])),
  }
}

/** The codes that a file makes errors of: the strings in what `new Problem(…)` is given first. */
export function problemCodesIn(text: string): string[] {
  const thrown = descend(parseAst(text, { lang: 'ts' })).filter(
    (node) => node.type === 'NewExpression' && isNamed(node['callee'], 'Problem'),
  )
  return thrown.flatMap((node) => stringsIn((node['arguments'] as unknown[])[0]))
}

/** Every string in a file that is a whole literal. */
export const literalsIn = (text: string): string[] => stringsIn(parseAst(text, { lang: 'ts' }))

const stringsIn = (node: unknown): string[] =>
  descend(node)
    .filter(({ type }) => type === 'Literal')
    .flatMap((found) => literal(found))

type Node = { type: string; [field: string]: unknown }

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

/** All nodes, each before those in it. */
function descend(value: unknown, found: Node[] = []): Node[] {
  if (typeof value !== 'object' || value === null) return found
  if (Array.isArray(value)) for (const item of value) descend(item, found)
  else if (isNode(value)) {
    found.push(value)
    for (const field in value) descend(value[field], found)
  }
  return found
}

const isLoader = (callee: unknown): boolean =>
  isNamed(callee, 'require') || (isNode(callee) && isNamed(callee['property'], 'getBuiltinModule'))

/** `import`, `export … from`, `import()`, `import('x').T`, `import x = require('x')`, `require('x')`, `getBuiltinModule('x')`. */
function specifierOf(node: Node): string[] {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
    case 'TSImportType':
      return literal(node['source'])
    case 'ImportExpression':
      return isNode(node['source']) && node['source'].type === 'Literal'
        ? literal(node['source'])
        : ['a computed import()']
    case 'TSExternalModuleReference':
      return literal(node['expression'])
    case 'CallExpression':
      return isLoader(node['callee']) ? literal((node['arguments'] as unknown[])[0]) : []
    case 'MemberExpression':
      // It starts a program too, in the place of this one.
      return isNamed(node['property'], 'execve') ? ['process.execve'] : []
    default:
      return []
  }
}

const isOfTypes = (node: Node): boolean =>
  node.type === 'TSImportType' || node['importKind'] === 'type' || node['exportKind'] === 'type'

const literal = (node: unknown): string[] => (isNode(node) && typeof node['value'] === 'string' ? [node['value']] : [])

/** Whether a node has this name, or is a string that says it: `env` in `process.env` and in `process['env']`. */
const isNamed = (node: unknown, name: string): boolean =>
  isNode(node) && (node['name'] === name || node['value'] === name)

/** `process.env` in any spelling, `{ env } = process`, and `import { env } from 'node:process'`. */
function isEnvironment(node: Node): boolean {
  if (node.type === 'MemberExpression') return isNamed(node['object'], 'process') && isNamed(node['property'], 'env')
  if (node.type === 'VariableDeclarator') return isNamed(node['init'], 'process') && namesEnv(node['id'], 'key')
  return (
    node.type === 'ImportDeclaration' &&
    /^(node:)?process$/.test(literal(node['source'])[0] ?? '') &&
    namesEnv(node['specifiers'], 'imported')
  )
}

function namesEnv(pattern: unknown, field: string): boolean {
  return descend(pattern).some((node) => isNamed(node[field], 'env'))
}

function target(from: string, specifier: string): string {
  if (specifier.startsWith('.')) return join(dirname(from), specifier)
  if (specifier.startsWith('node:')) return specifier
  // The package, without what is inside it.
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}
