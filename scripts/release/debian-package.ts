/**
 * Makes the Debian package of an executable, without root. The same executable, version and time give the same bytes. Its
 * control files are in `debian`; what they do at installation, removal and purge is in the maintainer scripts there.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { SHELLS } from '../../src/cli/command-line/subcommands.ts'
import { completionScript } from '../../src/cli/completion/completion.ts'
import { manPage } from './man-page.ts'

const ROOT = join(import.meta.dirname, '../..')
const CONTROL = join(import.meta.dirname, 'debian')
const NAME = 'agent-server'
/** Rises when the package changes and the version of the server does not. */
const REVISION = 1
const MAINTAINER = 'agent-server contributors <agent-server@localhost>'

/** The directories in which each shell looks for completions of installed programs. */
const COMPLETIONS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `usr/share/bash-completion/completions/${NAME}`,
  zsh: `usr/share/zsh/vendor-completions/_${NAME}`,
  fish: `usr/share/fish/vendor_completions.d/${NAME}.fish`,
}

/** What a Debian architecture is called here. */
export const DEBIAN_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }

type Package = {
  readonly executable: string
  /** The licenses of Node and what is inside it. */
  readonly nodeLicense: string
  readonly version: string
  readonly architecture: string
  readonly description: string
  /** The time when the commit was made. */
  readonly time: Date
  /** The tree of the package is made here, and removed. */
  readonly work: string
  readonly output: string
  /** The level of gzip, from 0 to 9. */
  readonly compression?: number
}

/** Returns the name of the file, which is in `output`. Throws if dpkg-deb is missing or fails. */
export function makeDebianPackage(made: Package): string {
  const tree = join(made.work, 'debian-package')
  rmSync(tree, { recursive: true, force: true })
  placeFiles(tree, made)
  placeControl(tree, made)
  const file = `${NAME}_${debianVersion(made.version)}_${made.architecture}.deb`
  // One thread: several cut the input into other blocks.
  const options = ['--root-owner-group', '-Zgzip', `-z${made.compression ?? 9}`, '--threads-max=1', '--build']
  const { status, stderr, error } = spawnSync('dpkg-deb', [...options, tree, join(made.output, file)], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], SOURCE_DATE_EPOCH: String(made.time.getTime() / 1000) },
  })
  if (status !== 0) throw new Error(`dpkg-deb failed: ${error?.message ?? stderr.trim()}. It is in the package dpkg.`)
  rmSync(tree, { recursive: true })
  return file
}

const debianVersion = (version: string) => `${version}-${REVISION}`

function placeFiles(tree: string, { executable, nodeLicense, version, time }: Package): void {
  const place = (path: string, content: string | Buffer, mode = 0o644) => write(tree, path, content, mode)
  const documents = `usr/share/doc/${NAME}`
  place(`usr/share/lintian/overrides/${NAME}`, readControl('lintian-overrides'))
  place(`usr/share/man/man1/${NAME}.1.gz`, compressed(manPage(version, time)))
  for (const shell of SHELLS) place(COMPLETIONS[shell], completionScript(shell))
  place(`usr/lib/systemd/system/${NAME}.service`, unit())
  place(`usr/lib/sysusers.d/${NAME}.conf`, readControl('sysusers'))
  place(`etc/${NAME}/environment`, readControl('environment'), 0o600)
  // The master key, which the installation makes, is in it.
  chmodSync(join(tree, 'etc', NAME), 0o700)
  place(`${documents}/copyright`, copyright(nodeLicense))
  place(`${documents}/changelog.gz`, compressed(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')))
  place(`${documents}/changelog.Debian.gz`, compressed(changelog(version, time)))
  const program = join(tree, 'usr/bin', NAME)
  makeDirectory(dirname(program), tree)
  copyFileSync(executable, program)
  chmodSync(program, 0o755)
}

/** The unit that the documentation shows, with the path of a package. */
function unit(): string {
  return readFileSync(join(ROOT, 'examples/deploy/agent-server.service'), 'utf8')
    .replace('/usr/local/bin/', '/usr/bin/')
    .replace('[Unit]\n', `[Unit]\nDocumentation=man:${NAME}(1)\n`)
}

const SCRIPTS = ['postinst', 'prerm', 'postrm']

function placeControl(tree: string, { version, architecture, description }: Package): void {
  for (const script of SCRIPTS) write(tree, `DEBIAN/${script}`, readControl(script), 0o755)
  write(tree, 'DEBIAN/templates', readControl('templates'), 0o644)
  write(tree, 'DEBIAN/conffiles', `/etc/${NAME}/environment\n`, 0o644)
  const kilobytes = Math.ceil(sizeOf(tree) / 1024)
  const control = readControl('control')
    .replace('@VERSION@', debianVersion(version))
    .replace('@ARCHITECTURE@', architecture)
    .replace('@MAINTAINER@', MAINTAINER)
    .replace('@KILOBYTES@', String(kilobytes))
    .replace('@DESCRIPTION@', description.replace(/^A /, ''))
  write(tree, 'DEBIAN/control', control, 0o644)
}

function copyright(nodeLicense: string): string {
  const [, , , ...terms] = readFileSync(join(ROOT, 'LICENSE'), 'utf8').split('\n')
  // Functions, because `$` in a license would mean something in a replacement.
  return readControl('copyright')
    .replace('@MIT@\n', () => asField(terms.join('\n')))
    .replace('@NODE@\n', () => asField(readFileSync(nodeLicense, 'utf8')))
}

function changelog(version: string, time: Date): string {
  return `${NAME} (${debianVersion(version)}) unstable; urgency=medium

  * Version ${version}: changelog.gz has its changes.

 -- ${MAINTAINER}  ${time.toUTCString().replace('GMT', '+0000')}
`
}

/** The text as the continuation of a field of a control file. */
const asField = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => ` ${line.trim() === '' ? '.' : line.trimEnd()}\n`)
    .join('')

const readControl = (name: string) => readFileSync(join(CONTROL, name), 'utf8')

const compressed = (text: string) => gzipSync(text, { level: 9 })

function write(tree: string, path: string, content: string | Buffer, mode: number): void {
  const file = join(tree, path)
  makeDirectory(dirname(file), tree)
  writeFileSync(file, content)
  chmodSync(file, mode)
}

/** Makes a directory with the same mode under each umask. */
function makeDirectory(directory: string, tree: string): void {
  mkdirSync(directory, { recursive: true })
  for (let each = directory; each.length >= tree.length; each = dirname(each)) chmodSync(each, 0o755)
}

function sizeOf(tree: string): number {
  const entries = readdirSync(tree, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.reduce((sum, { parentPath, name }) => sum + readFileSync(join(parentPath, name)).length, 0)
}
