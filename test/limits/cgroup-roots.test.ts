/** Where control groups can be made, from what the kernel says of a process. */
import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { removeAll } from '../support/remove-all.ts'
import { findRootsV1, findRootV2, pidsLimits, SERVER_LEAF } from '../../src/limits/cgroup-roots.ts'

/** Directories in place of control groups: of version 2 where there are controllers. */
async function makeGroup(path: string, controllers = ''): Promise<void> {
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'cgroup.controllers'), controllers)
  await writeFile(join(path, 'cgroup.procs'), '')
}

async function makeRoot(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'cgroups-'))
  onTestFinished(() => removeAll(root))
  return root
}

const mountOf = (type: string, root: string, at: string, options: string) =>
  `35 24 0:30 ${root} ${at} rw,nosuid - ${type} cgroup ${options}\n`

test('the server’s own group of version 2 is a root, with its controllers', async () => {
  const root = await makeRoot()
  await makeGroup(join(root, 'system.slice/agent.service'), 'cpuset cpu io memory pids')
  const mountinfo = mountOf('cgroup2', '/', root, 'rw')
  expect(findRootV2({ cgroup: '0::/system.slice/agent.service\n', mountinfo })).toEqual({
    version: 2,
    directory: join(root, 'system.slice/agent.service'),
    controllers: new Set(['memory', 'pids', 'cpu', 'io']),
  })
})

test('in a container the group is relative to the mount', async () => {
  const root = await makeRoot()
  await makeGroup(join(root, 'inner'), 'memory pids')
  const mountinfo = mountOf('cgroup2', '/docker/0123', root, 'rw')
  expect(findRootV2({ cgroup: '0::/docker/0123/inner\n', mountinfo })?.directory).toBe(join(root, 'inner'))
  expect(findRootV2({ cgroup: '0::/elsewhere\n', mountinfo })).toBeUndefined()
})

test('a server that was started by one that has moved makes its groups where that one does', async () => {
  const root = await makeRoot()
  await makeGroup(join(root, 'unit'), 'memory')
  await makeGroup(join(root, 'unit', SERVER_LEAF), 'memory')
  const mountinfo = mountOf('cgroup2', '/', root, 'rw')
  expect(findRootV2({ cgroup: `0::/unit/${SERVER_LEAF}\n`, mountinfo })?.directory).toBe(join(root, 'unit'))
})

test('without controllers there is no root', async () => {
  const root = await makeRoot()
  await makeGroup(root)
  expect(findRootV2({ cgroup: '0::/\n', mountinfo: mountOf('cgroup2', '/', root, 'rw') })).toBeUndefined()
})

test('in version 1 there is one for each hierarchy, also where several controllers share it', async () => {
  const root = await makeRoot()
  for (const name of ['pids', 'cpu,cpuacct', 'memory']) await mkdir(join(root, name, 'own'), { recursive: true })
  const mountinfo = ['pids', 'cpu,cpuacct', 'memory', 'freezer']
    .map((name) => mountOf('cgroup', '/', join(root, name), `rw,${name}`))
    .join('')
  const cgroup = '9:name=systemd:/own\n8:pids:/own\n4:cpu,cpuacct:/own\n3:memory:/gone\n2:freezer:/own\n0::/\n'
  expect(findRootsV1({ cgroup, mountinfo })).toEqual([
    { version: 1, directory: join(root, 'pids/own'), controllers: new Set(['pids']) },
    { version: 1, directory: join(root, 'cpu,cpuacct/own'), controllers: new Set(['cpu']) },
  ])
})

test.skipIf(process.getuid!() === 0)('without write permission there is no root', async () => {
  const root = await makeRoot()
  await makeGroup(root, 'memory')
  await chmod(root, 0o500)
  expect(findRootV2({ cgroup: '0::/\n', mountinfo: mountOf('cgroup2', '/', root, 'rw') })).toBeUndefined()
})

test('the limits of processes are those of the own group and those above it, in either version', async () => {
  const root = await makeRoot()
  const limits = { '.': '500', 'docker/0123': '100', 'docker/0123/inner': 'max', 'docker/0123/other': '7' }
  for (const [group, limit] of Object.entries(limits)) {
    await mkdir(join(root, group), { recursive: true })
    await writeFile(join(root, group, 'pids.max'), `${limit}\n`)
    await writeFile(join(root, group, 'pids.current'), '12\n')
  }
  const [v2, v1] = [mountOf('cgroup2', '/', root, 'rw'), mountOf('cgroup', '/', root, 'rw,pids')]
  const [inner, outer] = [
    { max: 100, current: 12 },
    { max: 500, current: 12 },
  ]
  expect(pidsLimits({ cgroup: '0::/docker/0123/inner\n', mountinfo: v2 })).toEqual([inner, outer])
  expect(pidsLimits({ cgroup: '3:cpu:/\n8:pids:/docker/0123/inner\n', mountinfo: v1 })).toEqual([inner, outer])
  expect(pidsLimits({ cgroup: '0::/docker\n', mountinfo: v2 })).toEqual([outer])
  // Where nothing above the container is mounted.
  const container = mountOf('cgroup2', '/docker/0123/inner', join(root, 'docker/0123/inner'), 'rw')
  expect(pidsLimits({ cgroup: '0::/docker/0123/inner\n', mountinfo: container })).toEqual([])
  expect(pidsLimits({ cgroup: '0::/docker/0123/inner\n', mountinfo: '' })).toEqual([])
})
