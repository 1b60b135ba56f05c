/** One HTTP server with what programs download: a file, a git repository, an npm package and a Python package. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export type PackageServer = AsyncDisposable & {
  readonly port: number
  /** `Host` and path of each request so far. */
  readonly seen: readonly string[]
}

/** More answers for a test that needs them; returns whether it has answered. */
type Answer = (request: IncomingMessage, response: ServerResponse) => boolean

const run = promisify(execFile)

export async function startPackageServer(answer: Answer = () => false): Promise<PackageServer> {
  const directory = await mkdtemp(join(tmpdir(), 'agent-server-packages-'))
  await Promise.all([makeRepository(directory), makeNpmPackage(directory), makeWheel(directory)])
  await writeFile(join(directory, 'hello'), 'hello from outside\n')
  const seen: string[] = []
  const server = createServer((request, response) => {
    const { url = '/', headers } = request
    seen.push(`${headers.host} ${url}`)
    if (answer(request, response)) return
    const origin = `http://${headers.host}`
    const page =
      url === '/tiny-package' ? npmDocument(origin, directory) : url === '/simple/tiny-wheel/' ? WHEEL_PAGE : undefined
    Promise.resolve(page ?? readFile(join(directory, new URL(url, origin).pathname))).then(
      (body) => response.setHeader('content-type', typesOf(url)).end(body),
      () => response.writeHead(404).end(),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await rm(directory, { recursive: true })
    },
  }
}

const typesOf = (url: string) =>
  url.startsWith('/simple') ? 'text/html' : url === '/tiny-package' ? 'application/json' : 'application/octet-stream'

/** Served as plain files, which git clones from too. */
async function makeRepository(directory: string): Promise<void> {
  const source = join(directory, 'source')
  await mkdir(source)
  await writeFile(join(source, 'README'), 'a repository\n')
  const git = (...args: string[]) => run('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: source })
  await git('init', '-q', '-b', 'main')
  await git('add', '.')
  await git('commit', '-q', '-m', 'one')
  await git('clone', '-q', '--bare', source, join(directory, 'repository.git'))
  await git('--git-dir', join(directory, 'repository.git'), 'update-server-info')
}

async function makeNpmPackage(directory: string): Promise<void> {
  await mkdir(join(directory, 'package'))
  await writeFile(join(directory, 'package/package.json'), JSON.stringify({ name: 'tiny-package', version: '1.0.0' }))
  await run('tar', ['-czf', join(directory, 'tiny-package.tgz'), '-C', directory, 'package'])
}

async function npmDocument(origin: string, directory: string): Promise<string> {
  const shasum = createHash('sha1')
    .update(await readFile(join(directory, 'tiny-package.tgz')))
    .digest('hex')
  const dist = { tarball: `${origin}/tiny-package.tgz`, shasum }
  const version = { name: 'tiny-package', version: '1.0.0', dist }
  return JSON.stringify({ name: 'tiny-package', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } })
}

const WHEEL = 'tiny_wheel-1.0.0-py3-none-any.whl'
const WHEEL_PAGE = `<!DOCTYPE html><a href="/${WHEEL}">${WHEEL}</a>`

async function makeWheel(directory: string): Promise<void> {
  const [base, info] = [join(directory, 'wheel'), 'tiny_wheel-1.0.0.dist-info']
  await mkdir(join(base, info), { recursive: true })
  await writeFile(join(base, 'tiny_wheel.py'), 'word = "wheel"\n')
  await writeFile(join(base, info, 'METADATA'), 'Metadata-Version: 2.1\nName: tiny-wheel\nVersion: 1.0.0\n')
  await writeFile(
    join(base, info, 'WHEEL'),
    'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  )
  await writeFile(
    join(base, info, 'RECORD'),
    `tiny_wheel.py,,\n${info}/METADATA,,\n${info}/WHEEL,,\n${info}/RECORD,,\n`,
  )
  await run('python3', ['-m', 'zipfile', '-c', join(directory, WHEEL), 'tiny_wheel.py', info], { cwd: base })
}
