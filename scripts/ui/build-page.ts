/** Builds the dashboard, `src/ui`, to `dist/ui`: hashed files and the page that loads them, compressed in two ways. */
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { REQUESTS } from '../../src/contract/requests/request-kinds.ts'
import { pageFolder } from '../../src/http/assets.ts'

const ROOT = join(import.meta.dirname, '../..')
const INDEX = 'index.html'
/** Written last. */
const LAST = `${INDEX}.br`
/** The file is next to the page, because the server serves all that is in its folder. */
const modulesOf = (folder: string) => `${folder}-modules.json`
/** What the page is made of. */
const PARTS = ['src/{ui,client,contract,lib}/**/*', 'scripts/ui/*.ts', 'package-lock.json']

/** Builds the page unless it is newer than its sources. Returns the files that its scripts are made of. */
export async function provideDashboard(folder = pageFolder()): Promise<string[]> {
  if (isStale(folder)) await buildDashboard(folder)
  return JSON.parse(readFileSync(modulesOf(folder), 'utf8')) as string[]
}

/** Builds it next to its place and then puts it there: others may serve the former page, or build the same one. */
async function buildDashboard(folder: string): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true })
  const place = mkdtempSync(`${folder}-`)
  try {
    const built = join(place, 'page')
    mkdirSync(built)
    const write = writeTo(built)
    const style = write(hashed('page.css', Buffer.from(compact(readFileSync(join(ROOT, 'src/ui/page.css'), 'utf8')))))
    const icon = write(hashed('icon.svg', readFileSync(join(ROOT, 'src/ui/icon.svg'))))
    const manifest = write(hashed('manifest.webmanifest', Buffer.from(JSON.stringify(manifestWith(icon)))))
    const { script, modules } = await bundle(write)
    write({ name: INDEX, content: Buffer.from(pageWith({ style, icon, manifest, script })) })
    writeFileSync(join(place, 'modules'), JSON.stringify(modules))
    renameSync(join(place, 'modules'), modulesOf(folder))
    if (existsSync(folder)) renameSync(folder, join(place, 'former'))
    renameSync(built, folder)
  } catch (error) {
    // Another builder has put the same page there meanwhile.
    if (isStale(folder)) throw error
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/** Returns the name of the script that begins, and the files that all scripts are made of. Parts that it loads later have their own files. */
async function bundle(write: Write): Promise<{ readonly script: string; readonly modules: readonly string[] }> {
  const bundler = await rolldown({
    input: { main: join(ROOT, 'src/ui/main.tsx') },
    platform: 'browser',
    tsconfig: join(ROOT, 'src/ui/tsconfig.json'),
    transform: { target: 'es2022', jsx: { runtime: 'automatic' } },
    plugins: [formsAlone],
    // A package that is missing would otherwise become an import that fails in the browser.
    onLog: (level, log, fallback) => (log.code === 'UNRESOLVED_IMPORT' ? fallback('error', log) : fallback(level, log)),
  })
  const { output } = await bundler.generate({
    format: 'esm',
    minify: true,
    entryFileNames: '[name]-[hash].js',
    chunkFileNames: '[name]-[hash].js',
  })
  await bundler.close()
  const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
  for (const file of output) if (file.type === 'chunk') write({ name: file.fileName, content: Buffer.from(file.code) })
  return { script: output.find((file) => file.type === 'chunk' && file.isEntry)?.fileName ?? '', modules }
}

/** The page knows how requests are shown, and has none of the schemas that the forms are next to. */
const formsAlone = {
  name: 'forms-alone',
  load(id: string): string | null {
    if (!id.endsWith('/src/contract/requests/request-kinds.ts')) return null
    const forms = Object.entries(REQUESTS).map(([kind, { form }]) => [kind, { form }])
    return `export const REQUESTS = ${JSON.stringify(Object.fromEntries(forms))}`
  },
}

/** Returns the style without comments and indentation, which browsers would load for nothing. */
const compact = (css: string): string => css.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/\s+/g, ' ')

const manifestWith = (icon: string) => ({
  name: 'agent-server',
  short_name: 'agents',
  start_url: './',
  display: 'standalone',
  background_color: '#16181d',
  theme_color: '#16181d',
  icons: [{ src: icon, sizes: 'any', type: 'image/svg+xml' }],
})

/** The links are relative, so that the page works below any path of a proxy. */
const pageWith = (names: { style: string; icon: string; manifest: string; script: string }) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>agent-server</title>
<link rel="icon" href="${names.icon}">
<link rel="manifest" href="${names.manifest}">
<link rel="stylesheet" href="${names.style}">
<script type="module" src="${names.script}"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. Everything that it shows is also in the API: see ../docs.</noscript>
</body>
</html>
`

type NewFile = { readonly name: string; readonly content: Buffer }

function hashed(name: string, content: Buffer): NewFile {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 8)
  return { name: name.replace('.', `-${hash}.`), content }
}

type Write = (file: NewFile) => string

/** Returns what writes a file to the folder, compressed only, and returns its name. */
const writeTo =
  (folder: string): Write =>
  ({ name, content }) => {
    const path = join(folder, name)
    writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }))
    writeFileSync(`${path}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }))
    return name
  }

function isStale(folder: string): boolean {
  const built = statSync(join(folder, LAST), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return globSync(PARTS, { cwd: ROOT }).some((part) => statSync(join(ROOT, part)).mtimeMs > built)
}
