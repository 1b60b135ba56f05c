/** The configuration that gives git in a sandbox the name of a person. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HostEnvironment } from '../../src/lib/start-process.ts'
import { checkConfig } from '../../src/policy/git/harmless-config.ts'
import { configOfIdentity, gitIdentities, gitIdentityIn } from '../../src/shell/git-identity.ts'

let home: string
let repository: string
let env: HostEnvironment
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'git-identity-'))
  repository = join(home, 'repository')
  execFileSync('git', ['init', '-q', repository])
  env = HostEnvironment.from({ PATH: process.env['PATH'], HOME: home })
})
afterEach(() => rm(home, { recursive: true, force: true }))

/** Written by git, which quotes it. */
const setName = (name: string, file = join(home, '.gitconfig')) =>
  execFileSync('git', ['config', '--file', file, 'user.name', name])

/** What git reads of the configuration, each with its value. */
async function readByGit(text: Buffer): Promise<string[]> {
  const file = join(home, 'written')
  await writeFile(file, text)
  const output = execFileSync('git', ['config', '--file', file, '--null', '--list'], { encoding: 'latin1' })
  return output.split('\0').slice(0, -1)
}

test.each([
  ['quotes and backslashes', String.raw`Ada "The \ Countess" Lovelace\ `],
  ['a line that looks like a setting', 'Ada\n[core]\n\tfsmonitor = touch stolen\n[alias "x"]\n'],
  ['comments and brackets', '# Ada ; [user] \t"'],
  ['control characters', 'Ada\r\n\u0001\b\u007f\r'],
  ['letters of other languages', 'Ада Лавлейс 🦀'],
])('a name with %s is one value for git, and the gate sees no other setting', async (_what, name) => {
  setName(name)
  const config = configOfIdentity(await gitIdentityIn(repository, env))!
  const bytes = Buffer.from(name).toString('latin1')
  expect(await readByGit(config)).toEqual(['include.path\n/etc/gitconfig', `user.name\n${bytes}`])
  const own = config.toString('utf8').replace('[include]\n\tpath = /etc/gitconfig\n', '')
  expect(checkConfig(own)).toSatisfy((found) => typeof found === 'object' || found === 'cannot be read with certainty')
})

test.each([
  ['', 'an empty entry'],
  ['.', 'a relative entry'],
  ['bin', 'a directory below it'],
])('no git of the directory itself is run: the search path begins with %j, %s', async (entry) => {
  setName('Ada')
  const [ran, directory] = [join(home, 'ran'), join(repository, entry)]
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'git'), `#!/bin/sh\ntouch '${ran}'\n`, { mode: 0o755 })
  const search = HostEnvironment.from({ PATH: `${entry}:${process.env['PATH']}`, HOME: home })
  expect(await gitIdentityIn(repository, search)).toEqual(new Map([['user.name', 'Ada']]))
  expect(existsSync(ran)).toBe(false)
})

test('a name in another charset keeps its bytes', async () => {
  const written = Buffer.from('[user]\n\tname = Andr\xe9\n', 'latin1')
  await writeFile(join(home, '.gitconfig'), written)
  expect(configOfIdentity(await gitIdentityIn(repository, env))?.includes(Buffer.from('Andr\xe9"', 'latin1'))).toBe(
    true,
  )
})

test('both files of the person count, and what the repository says is left to git in the sandbox', async () => {
  await mkdir(join(home, '.config/git'), { recursive: true })
  await writeFile(join(home, '.config/git/config'), '[user]\n\temail = ada@example.com\n[author]\n\tname = A\n')
  setName('Ada')
  setName('Other', join(repository, '.git/config'))
  const names = async (options = {}) => Object.fromEntries(await gitIdentityIn(repository, env, options))
  const others = { 'user.email': 'ada@example.com', 'author.name': 'A' }
  expect(await names()).toEqual({ ...others, 'user.name': 'Ada' })
  expect(await names({ ofRepository: true })).toEqual({ ...others, 'user.name': 'Other' })
})

test('a name that is set later is found, and one that was found is not looked up again', async () => {
  const identityOf = gitIdentities(env)
  expect(configOfIdentity(await identityOf(repository))).toBeUndefined()
  setName('Ada')
  expect((await identityOf(repository)).get('user.name')).toBe('Ada')
  setName('Grace')
  expect((await identityOf(repository)).get('user.name')).toBe('Ada')
})

test('a repository whose configuration never ends holds up nothing else, and gives no name', async () => {
  setName('Ada')
  execFileSync('mkfifo', [join(home, 'pipe')])
  await appendFile(join(repository, '.git/config'), `[include]\n\tpath = ${join(home, 'pipe')}\n`)
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const found = await gitIdentityIn(repository, env)
  clearInterval(timer)
  expect([found.size, turns > 10]).toEqual([0, true])
})
