/**
 * What the server and its tests need besides npm packages: which programs and libraries, which packages contain them, and how
 * they are installed. The only such list. Run as `provide.mjs server|tests|packages` before any of them. Plain JavaScript for Node 20,
 * because the pinned Node may be what does not start yet.
 *
 * Installs what is missing where that needs no question: with apt, as root or by sudo without a password. Otherwise prints
 * one line that says what to run, and exits with 1.
 */
// @ts-check
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {'apt' | 'dnf' | 'brew'} Manager */
/**
 * @typedef {object} Need
 * @property {string} name What a person knows it by.
 * @property {() => boolean} isThere
 * @property {Partial<Record<Manager, string>>} packages A platform without one has it already, or cannot have it.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PINNED_NODE = join(ROOT, 'node_modules/.bin/node')

/** A program that hangs is one that does not work, milliseconds. */
const TRIAL_MS = 60_000
const INSTALL_MS = 20 * 60_000
/** Others may be installing, too, as a system does when it starts. */
const LOCK_TRIES = 60
const LOCK_WAIT_MS = 5000

/** One of these is enough. The first has no window, and takes half of the processor time. */
export const BROWSERS = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]

/** The directory of Debian for these is not in the PATH of every user. */
export const NGINX = ['nginx', '/usr/sbin/nginx']
export const PGBOUNCER = ['pgbouncer', '/usr/sbin/pgbouncer']

/** Debian has the programs of each version outside of the PATH. The newest comes first. */
const POSTGRES_VERSIONS = existsSync('/usr/lib/postgresql')
  ? readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a))
  : []

/**
 * Returns the names and paths that a program of the PostgreSQL server may have.
 * @param {'initdb' | 'postgres' | 'pg_receivewal'} name
 */
export const ofPostgres = (name) => [
  ...POSTGRES_VERSIONS.map((version) => `/usr/lib/postgresql/${version}/bin/${name}`),
  name,
]

/** @type {Need[]} */
const SERVER_NEEDS = [
  command('bash'),
  {
    name: 'libatomic.so.1',
    // Official builds of Node 25 and newer need it, and minimal systems do not have it.
    isThere: () => !faultOf(PINNED_NODE, ['--version'])?.includes('libatomic'),
    packages: { apt: 'libatomic1', dnf: 'libatomic' },
  },
]

/** @type {Need[]} */
const TEST_NEEDS = [
  ...SERVER_NEEDS,
  command('bwrap', { apt: 'bubblewrap', dnf: 'bubblewrap' }),
  {
    name: 'chromium',
    // On some systems the name is that of a script that only says where to get it.
    isThere: () => {
      const browser = findCommand(BROWSERS)
      return browser !== undefined && faultOf(browser, ['--version']) === undefined
    },
    packages: {
      apt: isUbuntu() ? 'chromium-browser' : 'chromium-headless-shell',
      dnf: 'chromium',
      brew: '--cask chromium',
    },
  },
  command('caddy'),
  command('curl'),
  command('diff', { apt: 'diffutils', dnf: 'diffutils' }),
  command('fish'),
  command('git'),
  command('ip', { apt: 'iproute2', dnf: 'iproute' }),
  {
    name: 'asm/unistd.h',
    isThere: () => process.platform !== 'linux' || existsSync('/usr/include/asm-generic/unistd.h'),
    packages: { apt: 'linux-libc-dev', dnf: 'kernel-headers' },
  },
  {
    name: 'nginx',
    isThere: () => findCommand(NGINX) !== undefined,
    packages: { apt: 'nginx', dnf: 'nginx', brew: 'nginx' },
  },
  {
    name: 'pgbouncer',
    isThere: () => findCommand(PGBOUNCER) !== undefined,
    packages: { apt: 'pgbouncer', dnf: 'pgbouncer', brew: 'pgbouncer' },
  },
  {
    name: 'pip',
    isThere: () => faultOf('python3', ['-m', 'pip', '--version']) === undefined,
    packages: { apt: 'python3-pip', dnf: 'python3-pip' },
  },
  command('mount', { apt: 'mount', dnf: 'util-linux-core' }),
  {
    name: 'postgres',
    isThere: () => findCommand(ofPostgres('initdb')) !== undefined && findCommand(ofPostgres('postgres')) !== undefined,
    packages: { apt: 'postgresql', dnf: 'postgresql-server', brew: 'postgresql@17' },
  },
  command('ps', { apt: 'procps', dnf: 'procps-ng' }),
  command('rg', { apt: 'ripgrep', dnf: 'ripgrep', brew: 'ripgrep' }),
  command('script', { apt: 'bsdutils', dnf: 'util-linux-script' }),
  command('setpriv', { apt: 'util-linux', dnf: 'util-linux' }),
  command('ssh-agent', { apt: 'openssh-client', dnf: 'openssh-clients' }),
  command('tar'),
  command('zsh'),
]

/** @type {Need[]} */
const PACKAGE_NEEDS = [...SERVER_NEEDS, command('lintian', { apt: 'lintian' }), command('ruby', { apt: 'ruby' })]

/** What each is needed for: its needs, and what does not happen without them. */
const PURPOSES = {
  server: { needs: SERVER_NEEDS, otherwise: 'Not started' },
  tests: { needs: TEST_NEEDS, otherwise: 'No test was run' },
  packages: { needs: PACKAGE_NEEDS, otherwise: 'No package was checked' },
}

const UPDATE = 'apt-get update'

/** @type {Record<Manager, (packages: string) => string>} */
const INSTALL = {
  apt: (packages) => `apt-get install -y --no-install-recommends ${packages}`,
  dnf: (packages) => `dnf install -y ${packages}`,
  brew: (packages) => `brew install ${packages}`,
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const purpose = process.argv[2]
  const { needs, otherwise } = PURPOSES[purpose === 'tests' || purpose === 'packages' ? purpose : 'server']
  const fault = provide(needs) ?? pinnedNodeFault() ?? (purpose === 'tests' ? sandboxFault() : undefined)
  if (fault !== undefined) {
    process.stderr.write(`${otherwise}: ${fault}\n`)
    process.exitCode = 1
  }
}

/**
 * @param {readonly Need[]} needs
 * @returns {string | undefined} what is missing, and the line that installs it
 */
function provide(needs) {
  if (!existsSync(PINNED_NODE)) return 'the npm packages are not installed. Run: npm ci'
  const manager = packageManager()
  const missing = findMissing(needs, manager)
  if (missing.length === 0) return undefined
  const prefix = rootPrefix()
  if (manager !== 'apt' || prefix === undefined) return howToInstall(missing, manager)
  install(packagesOf(missing, manager), prefix)
  const stillMissing = findMissing(needs, manager)
  return stillMissing.length === 0 ? undefined : howToInstall(stillMissing, manager)
}

/**
 * @param {readonly Need[]} needs
 * @param {Manager | undefined} manager
 */
function findMissing(needs, manager) {
  return needs.filter(
    ({ packages, isThere }) => (manager === undefined || packages[manager] !== undefined) && !isThere(),
  )
}

/**
 * @param {string} packages
 * @param {readonly string[]} prefix
 */
function install(packages, prefix) {
  process.stdout.write(`Installing Debian packages that are missing: ${packages}\n`)
  for (const line of [UPDATE, INSTALL.apt(packages)]) {
    // The packages of servers would start them.
    const settings = ['DEBIAN_FRONTEND=noninteractive', 'SYSTEMD_OFFLINE=1']
    const [program = 'env', ...args] = [...prefix, 'env', ...settings, ...line.split(' ')]
    const fault = unlocked(() => faultOf(program, args, INSTALL_MS))
    // A failed update may be harmless, and the search that follows notices a failed installation.
    if (fault !== undefined) process.stderr.write(`${line} failed:\n${fault}\n`)
  }
}

/**
 * Repeats the work while somebody else holds a lock of apt.
 * @param {() => string | undefined} work
 */
function unlocked(work) {
  let fault = work()
  for (let tries = 1; tries < LOCK_TRIES && fault?.includes('Could not get lock'); tries++) {
    if (tries === 1) process.stdout.write('Waiting for another installation to end\n')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_WAIT_MS)
    fault = work()
  }
  return fault
}

/**
 * @param {readonly Need[]} missing
 * @param {Manager | undefined} manager
 */
function howToInstall(missing, manager) {
  const names = missing.map(({ name }) => name).join(', ')
  if (manager === undefined) return `${names} not found. Install what provides them.`
  const needsRoot = manager !== 'brew' && process.getuid?.() !== 0
  const sudo = needsRoot && findCommand(['sudo']) ? 'sudo ' : ''
  // A new system has no list of packages yet.
  const lines = [...(manager === 'apt' ? [UPDATE] : []), INSTALL[manager](packagesOf(missing, manager))]
  const asRoot = needsRoot && sudo === '' ? ' as root' : ''
  return `${names} not found. Run${asRoot}: ${lines.map((line) => sudo + line).join(' && ')}`
}

/** Bubblewrap may be installed and still not be allowed to make namespaces. */
function sandboxFault() {
  if (process.platform !== 'linux') return undefined
  const sandbox = ['--unshare-pid', '--ro-bind', '/', '/', '--proc', '/proc', 'true']
  const fault = faultOf('bwrap', sandbox)
  if (fault === undefined) return undefined
  return `bwrap cannot make a sandbox here (${fault}). Allow unprivileged user namespaces, or run as root.`
}

function pinnedNodeFault() {
  const fault = faultOf(PINNED_NODE, ['--version'])
  return fault === undefined ? undefined : `the Node of the npm packages does not run here (${fault}). Run: npm ci`
}

/**
 * Why the program did not end well, in its own words; undefined when it did.
 * @param {string} program
 * @param {readonly string[]} args
 */
function faultOf(program, args, timeout = TRIAL_MS) {
  const { status, signal, stderr, stdout, error } = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout,
    killSignal: 'SIGKILL',
  })
  if (status === 0) return undefined
  if (error) return error.message
  return stderr.trim() || stdout.trim() || `exit code ${status ?? signal}`
}

/**
 * @param {string} name
 * @param {Need['packages']} packages
 * @returns {Need}
 */
function command(name, packages = { apt: name, dnf: name, brew: name }) {
  return { name, isThere: () => findCommand([name]) !== undefined, packages }
}

/**
 * The first of these commands that can be executed, as an absolute path.
 * @param {readonly string[]} commands
 */
export function findCommand(commands) {
  const directories = (process.env['PATH'] ?? '').split(delimiter)
  return commands
    .flatMap((name) => (name.includes('/') ? [name] : directories.map((directory) => join(directory, name))))
    .find(isExecutable)
}

/**
 * @param {readonly Need[]} needs
 * @param {Manager} manager
 */
function packagesOf(needs, manager) {
  return needs.map(({ packages }) => packages[manager]).join(' ')
}

/** @returns {Manager | undefined} */
function packageManager() {
  if (process.platform === 'darwin') return 'brew'
  if (findCommand(['apt-get'])) return 'apt'
  return findCommand(['dnf']) ? 'dnf' : undefined
}

/** What makes a command run as root without a question; undefined when nothing does. */
function rootPrefix() {
  if (process.getuid?.() === 0) return []
  const sudo = findCommand(['sudo'])
  if (sudo === undefined) return undefined
  return faultOf(sudo, ['-n', 'true']) === undefined ? [sudo, '-n'] : undefined
}

function isUbuntu() {
  const file = '/etc/os-release'
  return existsSync(file) && /^ID=ubuntu$/m.test(readFileSync(file, 'utf8'))
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
