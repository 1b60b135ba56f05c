/** Run as a user without rights: a shell in the sandbox, and what it can do there, as JSON. */
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeTree } from '../../../src/files/trees/remove-tree.ts'
import { findProcess } from '../../../src/shell/processes/process-table.ts'
import { HostEnvironment } from '../../../src/lib/start-process.ts'
import { BashShells } from '../../../src/shell/shells.ts'
import { requireSandbox } from '../../support/require-sandbox.ts'
import { PATIENCE_S } from '../../support/patience.ts'

const root = process.argv[2]!
const [dataDir, workdirBase, home] = [join(root, 'data'), join(root, 'work'), join(root, 'home')]
const keyFile = join(root, 'key')
mkdirSync(dataDir)
mkdirSync(home)
writeFileSync(keyFile, 'key')
writeFileSync(join(dataDir, 'secret'), 'secret')
const shells = new BashShells({
  conversationId: randomUUID(),
  workdir: join(workdirBase, 'workdir'),
  stateDir: join(dataDir, 'state'),
  outputDir: join(dataDir, 'output'),
  privateDir: join(dataDir, 'private'),
  env: HostEnvironment.from({ PATH: process.env['PATH'], HOME: home }),
  launcher: await requireSandbox({ dataDir, workdirBase, home, keyFiles: [keyFile] }),
})
const run = async (command: string) => {
  const { stdout } = await shells
    .get('agent')
    .run(command, { timeout: PATIENCE_S, signal: new AbortController().signal })
  return stdout
}
const seen = {
  user: await run('id -u'),
  key: await run(`cat ${keyFile}`),
  secret: await run(`cat ${dataDir}/secret`),
  // With all rights in namespaces of its own: what covers the secret is not to be moved, nor to be gone around.
  nested: await run(
    `mkdir -p ~/m ~/u ~/w; unshare -Urm sh -c 'umount -l ${dataDir}; mount --bind / ~/m; mount -t overlay o -o lowerdir=/,upperdir=$HOME/u,workdir=$HOME/w ~/m; cat ${dataDir}/secret ~/m${dataDir}/secret'`,
  ),
  written: await run('echo here >file; cat file'),
  outside: await run(`touch ${root}/x /etc/x; ls /etc/x`),
  capabilities: await run("sed -n 's/^CapEff:\\t//p' /proc/self/status"),
  processes: await run('cat /proc/[0-9]*/comm >all; sort -u all'),
}
await run('mkdir -p locked/deep; touch locked/deep/file; chmod 500 locked/deep; chmod 0 locked')
await run("env -i setsid sh -c 'sleep 30 & echo $! >pid' >/dev/null 2>&1; sleep 0.05")
const own = process.pid
await shells.close()
const children = findProcess(own)
  ? await import('node:fs').then(({ readFileSync }) => readFileSync(`/proc/${own}/task/${own}/children`, 'utf8'))
  : ''
await removeTree(workdirBase)
process.stdout.write(
  JSON.stringify({
    isRemoved: !existsSync(workdirBase),
    ...seen,
    daemonIsGone: children.trim() === '',
    outside: seen.outside !== '' || existsSync(join(root, 'x')),
  }),
)
process.exit()
