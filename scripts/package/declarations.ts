/** Writes the declarations of the npm package: those of its entries, and those that they refer to. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ENTRIES } from './manifest.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The path in `from "./x.ts"` and in `import("./x.ts")`. */
const REFERENCE = /(\bfrom |\bimport\(|\bimport )(['"])(\.{1,2}\/[^'"]+)\.ts\2/g

export function makeDeclarations(folder: string): void {
  const all = mkdtempSync(join(tmpdir(), 'agent-server-types-'))
  try {
    compile(all)
    const copied = new Set<string>()
    for (const { types } of ENTRIES) copyWithReferences(types, { from: all, to: folder, copied })
  } finally {
    rmSync(all, { recursive: true, force: true })
  }
}

function compile(outDir: string): void {
  const project = join(outDir, 'tsconfig.json')
  const compilerOptions = {
    noEmit: false,
    incremental: false,
    tsBuildInfoFile: null,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: join(ROOT, 'src'),
    outDir,
    typeRoots: [join(ROOT, 'node_modules/@types')],
  }
  const files = ENTRIES.map(({ source }) => join(ROOT, source))
  writeFileSync(project, JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: [], files }))
  const { status, stdout, error } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', project], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`The declarations were not made. ${error?.message ?? stdout}`)
}

type Copying = { readonly from: string; readonly to: string; readonly copied: Set<string> }

/** Files that only the code imports are left out. */
function copyWithReferences(path: string, copying: Copying): void {
  const { from, to, copied } = copying
  if (copied.has(path)) return
  copied.add(path)
  const text = readFileSync(join(from, path), 'utf8')
  const target = join(to, path)
  mkdirSync(dirname(target), { recursive: true })
  // Every setting of module resolution finds the declaration of a `.js` file, and not all that of a `.ts` file.
  writeFileSync(target, text.replaceAll(REFERENCE, '$1$2$3.js$2'))
  for (const [, , , reference] of text.matchAll(REFERENCE))
    copyWithReferences(join(dirname(path), `${reference}.d.ts`), copying)
}
