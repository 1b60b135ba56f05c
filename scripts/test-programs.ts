/** The programs that the tests run, the packages that contain them, and how they are installed. The only such list. */
import { execFileSync, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

type PackageManager = 'apt' | 'dnf' | 'brew'

type Program = {
  /** Any one of these commands is enough. */
  readonly commands: readonly string[]
  /** A platform without a package has the program already, or cannot have it. */
  readonly packages: Readonly<Partial<Record<PackageManager, string>>>
}

const everywhere = (command: string, name = command): Program => ({
  commands: [command],
  packages: { apt: name, dnf: name, brew: name },
})

const PROGRAMS: readonly Program[] = [
  everywhere('bash'),
  { commands: ['bwrap'], packages: { apt: 'bubblewrap', dnf: 'bubblewrap' } },
  {
    commands: ['chromium', 'chromium-browser', 'google-chrome', '/Applications/Chromium.app/Contents/MacOS/Chromium'],
    packages: { apt: isUbuntu() ? 'chromium-browser' : 'chromium', dnf: 'chromium', brew: '--cask chromium' },
  },
  everywhere('curl'),
  everywhere('diff', 'diffutils'),
  everywhere('git'),
  { commands: ['mount'], packages: { apt: 'mount', dnf: 'util-linux-core' } },
  { commands: ['ps'], packages: { apt: 'procps', dnf: 'procps-ng' } },
  everywhere('rg', 'ripgrep'),
  { commands: ['script'], packages: { apt: 'bsdutils', dnf: 'util-linux-script' } },
  { commands: ['setpriv'], packages: { apt: 'util-linux', dnf: 'util-linux' } },
  everywhere('tar'),
]

/** Where each manager puts packages, as one line for a shell. */
const INSTALL: Readonly<Record<PackageManager, (names: string) => string>> = {
  apt: (names) => `apt-get install -y --no-install-recommends ${names}`,
  dnf: (names) => `dnf install -y ${names}`,
  brew: (names) => `brew install ${names}`,
}

/**
 * Installs what is missing, where that is possible without a question: with apt, as root or by sudo without a password.
 * Returns the line that tells a person what to do instead, or undefined when every program is there.
 */
export function providePrograms(): string | undefined {
  const manager = packageManager()
  const missing = findMissing(manager)
  if (missing.length === 0) return sandboxFault()
  const prefix = rootPrefix()
  if (manager === 'apt' && prefix !== undefined) {
    install(packagesOf(missing, manager), prefix)
    const stillMissing = findMissing(manager)
    return stillMissing.length === 0 ? sandboxFault() : howToInstall(stillMissing, manager)
  }
  return howToInstall(missing, manager)
}

/** The first of these commands that can be executed, as an absolute path. */
export function findCommand(commands: readonly string[]): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(delimiter)
  return commands
    .flatMap((command) =>
      command.includes('/') ? [command] : directories.map((directory) => join(directory, command)),
    )
    .find(isExecutable)
}

function findMissing(manager: PackageManager | undefined): Program[] {
  return PROGRAMS.filter(
    ({ commands, packages }) =>
      (manager === undefined || packages[manager] !== undefined) && findCommand(commands) === undefined,
  )
}

function install(packages: string, prefix: readonly string[]): void {
  process.stdout.write(`The tests need packages that are not installed: ${packages}. Installing them.\n`)
  const environment = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive']
  for (const line of ['apt-get update', INSTALL.apt(packages)]) {
    const [command, ...args] = [...environment, ...line.split(' ')]
    // A failed update may be harmless, and a failed installation is noticed by the search that follows.
    spawnSync(command!, args, { stdio: ['ignore', 'inherit', 'inherit'] }) // `environment` is never empty
  }
}

function howToInstall(missing: readonly Program[], manager: PackageManager | undefined): string {
  const names = missing.map(({ commands }) => commands[0]).join(', ')
  if (manager === undefined) return `No test was run: the tests need these programs on PATH: ${names}.`
  const sudo = manager === 'brew' || process.getuid?.() === 0 ? '' : 'sudo '
  return `No test was run: ${names} not found. Run: ${sudo}${INSTALL[manager](packagesOf(missing, manager))}`
}

/** Bubblewrap that is installed may still not be allowed to make namespaces. */
function sandboxFault(): string | undefined {
  if (process.platform !== 'linux') return undefined
  const { status, stderr } = spawnSync('bwrap', ['--unshare-pid', '--ro-bind', '/', '/', '--proc', '/proc', 'true'], {
    encoding: 'utf8',
  })
  if (status === 0) return undefined
  return `No test was run: bwrap cannot make a sandbox here (${stderr.trim()}). Allow user namespaces, or run as root.`
}

const packagesOf = (programs: readonly Program[], manager: PackageManager): string =>
  programs.map(({ packages }) => packages[manager]).join(' ')

function packageManager(): PackageManager | undefined {
  if (process.platform === 'darwin') return 'brew'
  if (findCommand(['apt-get'])) return 'apt'
  return findCommand(['dnf']) ? 'dnf' : undefined
}

/** What makes a command run as root without a question; undefined when nothing does. */
function rootPrefix(): readonly string[] | undefined {
  if (process.getuid?.() === 0) return []
  const sudo = findCommand(['sudo'])
  if (sudo === undefined) return undefined
  try {
    execFileSync(sudo, ['-n', 'true'], { stdio: 'ignore' })
    return [sudo, '-n']
  } catch {
    return undefined // sudo would ask for a password
  }
}

function isUbuntu(): boolean {
  const file = '/etc/os-release'
  return existsSync(file) && /^ID=ubuntu$/m.test(readFileSync(file, 'utf8'))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
