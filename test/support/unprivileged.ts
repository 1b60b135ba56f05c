/** Runs a script of the tests as a user without rights: not as root, also from a checkout that only root may read. */
import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

const CHECKOUT = join(import.meta.dirname, '../..')
const AS_NOBODY = 'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'

/** Returns what it prints as JSON. It is given a directory that it may write in. */
export async function runAsNobody(path: string): Promise<unknown> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'agent-server-nobody-')))
  try {
    if (process.getuid?.() !== 0) return await printedBy(process.execPath, [path, root])
    await chmod(root, 0o777)
    const checkout = join(root, 'checkout')
    await mkdir(checkout)
    const inCheckout = (file: string) => join(checkout, relative(CHECKOUT, file))
    const mounted = ['--mount', 'sh', '-ec', `mount --bind "$0" "$1"; cd "$1"; shift; ${AS_NOBODY}`, CHECKOUT, checkout]
    return await printedBy('unshare', [...mounted, inCheckout(process.execPath), inCheckout(path), root])
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

async function printedBy(program: string, args: readonly string[]): Promise<unknown> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let [said, complained] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complained += text))
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`exit code ${String(code)}: ${complained}`)
  return JSON.parse(said) as unknown
}
