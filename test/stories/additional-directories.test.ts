/** Directories that an agent works in besides its workdir. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { runCommand } from '../support/command.ts'

/** Each message is a command, or a call of the editor as JSON. */
const script: Script = ({ body }) => {
  const { role, content } = body.messages.at(-1)!
  if (role !== 'user') return { text: 'Done.' }
  const text = content as string
  return text.startsWith('{"') ? { calls: [{ name: 'FileEditor', arguments: text }] } : bash(text)
}

let scene: Stage
let base: string
beforeAll(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'additional-')))
  scene = await setStage(script, { env: { OPENHANDS_ISOLATION: 'bubblewrap' } })
})
afterAll(async () => {
  await scene[Symbol.asyncDispose]()
  await rm(base, { recursive: true, force: true })
})

/** Makes directories with these names. */
const made = async (name: string, ...more: string[]): Promise<string[]> => {
  const paths = ['project', ...more].map((each) => join(base, name, each))
  for (const path of paths) await mkdir(path, { recursive: true })
  return paths
}

async function outputOf(id: string, text: string): Promise<string> {
  const events = await scene.say(id, text)
  const { output } = events.find(({ type }) => type === 'ToolResult')
  return typeof output === 'string' ? output : `${output.stdout}${output.stderr}`
}

const edit = (path: string) => JSON.stringify({ command: 'create', path, file_text: 'made by the agent\n' })
const configure = (id: string, body: object) => scene.server.call('PUT', `/conversations/${id}/config`, body)

test('commands and the editor change an additional directory, and nothing next to it', async () => {
  const [workdir, library, other] = await made('works', 'library', 'other')
  await writeFile(join(library!, 'a.txt'), 'of the library\n')
  const id = await scene.create({ workdir, additional_directories: [library] })
  expect(await outputOf(id, `cat ${library}/a.txt; echo b > ${library}/b.txt; echo c > ${other}/c.txt`)).toMatch(
    /of the library\n[^]*c\.txt: /,
  )
  await outputOf(id, edit(join(library!, 'd.txt')))
  expect(await outputOf(id, edit(join(other!, 'd.txt')))).toContain('not accessible')
  expect(await readFile(join(library!, 'b.txt'), 'utf8')).toBe('b\n')
  expect(existsSync(join(library!, 'd.txt'))).toBe(true)
  expect([existsSync(join(other!, 'c.txt')), existsSync(join(other!, 'd.txt'))]).toEqual([false, false])
  const { system_prompt } = (await scene.events(id, 'types=SystemInit'))[0]
  expect(system_prompt).toContain(`You may also read and change files in ${library};`)
})

test('a change holds for the next command, the model reads of it, and a fork keeps it', async () => {
  const [workdir, library] = await made('changes', 'library')
  const id = await scene.create({ workdir })
  expect(await outputOf(id, `echo no > ${library}/a.txt`)).toContain('a.txt: ')
  const { body } = await configure(id, { additional_directories: [library, `${library}/`] })
  expect(body.additional_directories).toEqual([library])
  expect(await outputOf(id, `echo yes > ${library}/a.txt; echo written`)).toBe('written\n')
  const { messages } = scene.model.requests.at(-1)!.body as { messages: readonly { content: unknown }[] }
  expect(JSON.stringify(messages)).toContain(
    `besides your working directory, you may read and change files in ${library}`,
  )
  const fork = (await scene.server.call('POST', `/conversations/${id}/fork`, {})).body
  expect(fork.additional_directories).toEqual([library])
  expect(await outputOf(fork.id, `cat ${library}/a.txt`)).toBe('yes\n')
  await configure(id, { additional_directories: [] })
  expect(await outputOf(id, `echo no > ${library}/a.txt`)).toContain('a.txt: ')
  expect(await readFile(join(library!, 'a.txt'), 'utf8')).toBe('yes\n')
})

test('one that becomes a link is left out, and the workdir can still be used', async () => {
  const [workdir, library, other] = await made('swapped', 'library', 'other')
  const id = await scene.create({ workdir, additional_directories: [library] })
  await outputOf(id, 'true')
  await rename(library!, `${library}-away`)
  await symlink(other!, library!)
  await configure(id, { additional_directories: [`${library}-away`] })
  await rename(`${library}-away`, `${library}-gone`)
  await symlink(other!, `${library}-away`)
  expect(await outputOf(id, `echo no > ${library}-away/a.txt; echo yes > ${workdir}/b.txt`)).toContain('a.txt: ')
  expect(await outputOf(id, edit(`${library}-away/c.txt`))).toContain('not accessible')
  expect([existsSync(join(other!, 'a.txt')), existsSync(join(other!, 'c.txt'))]).toEqual([false, false])
  expect(await readFile(join(workdir!, 'b.txt'), 'utf8')).toBe('yes\n')
})

test('a workdir inside of an additional directory, and the other way round, is mounted with it', async () => {
  const [project, inner] = await made('nested', 'project/inner')
  for (const [workdir, more] of [
    [project, inner],
    [inner, project],
  ]) {
    const id = await scene.create({ workdir, additional_directories: [more] })
    expect(await outputOf(id, `echo a > ${project}/a && echo b > ${inner}/b && pwd`)).toBe(`${workdir}\n`)
  }
})

test.each([
  ['a file', (path: string) => `${path}/file`, 400, 'it is not a directory that exists'],
  ['a directory that does not exist', (path: string) => `${path}/none`, 400, 'it is not a directory that exists'],
  ['a link', (path: string) => `${path}/link`, 400, 'its path contains a symbolic link'],
  ['the root', () => '/', 400, 'it contains'],
  ['the data of the server', () => scene.server.dataDir, 400, 'is refused: it '],
  ['a relative path', () => 'library', 400, 'must be an absolute path'],
  ['kernel files', () => '/proc/self', 400, 'it is in /proc'],
])('%s is refused', async (_, pathIn, status, message) => {
  const [workdir] = await made('refused')
  await writeFile(join(workdir!, 'file'), '')
  await symlink('/etc', join(workdir!, 'link')).catch(() => {})
  const id = await scene.create({ workdir })
  const given = pathIn(workdir!)
  const answer = await configure(id, { additional_directories: [given] })
  expect([answer.status, answer.body.message]).toEqual([status, expect.stringContaining(message)])
  const creating = await scene.server.call('POST', '/conversations', { workdir, additional_directories: [given] })
  expect(creating.status).toBe(status)
})

test('in accept_edits edits run there, a deny rule holds there, and an allow rule about a path does not', async () => {
  const [workdir, library] = await made('rules', 'library')
  const permission_rules = { allow: ['Edit(free.txt)'], ask: [], deny: ['Edit(held.txt)'] }
  const settings = { workdir, additional_directories: [library], permission_rules }
  const id = await scene.create({ ...settings, permission_mode: 'accept_edits' })
  await outputOf(id, edit(join(library!, 'a.txt')))
  expect(existsSync(join(library!, 'a.txt'))).toBe(true)
  expect(await outputOf(id, edit(join(library!, 'held.txt')))).toContain('denies')
  const asking = await scene.create({ ...settings, permission_mode: 'deny' })
  await outputOf(asking, edit(join(workdir!, 'free.txt')))
  expect(await outputOf(asking, edit(join(library!, 'free.txt')))).toContain(library)
  expect([existsSync(join(workdir!, 'free.txt')), existsSync(join(library!, 'free.txt'))]).toEqual([true, false])
})

test('--add-dir names directories of a new conversation, and adds to those of a resumed one', async () => {
  const [project, library, other] = await made('cli', 'library', 'other')
  const model = await startScriptedModel(script)
  const env = {
    HOME: join(base, 'cli'),
    OPENHANDS_DATA_DIR: join(base, 'cli/data'),
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: model.baseUrl,
    LLM_API_KEY: 'sk-test',
  }
  const run = (...args: string[]) => runCommand(['-p', '--permission-mode', 'bypass', ...args], { cwd: project!, env })
  try {
    await run('--add-dir', '../library', 'echo 1 > ../library/a')
    expect(await readFile(join(library!, 'a'), 'utf8')).toBe('1\n')
    await run('-c', '--add-dir', other!, 'cat ../library/a > ../other/b')
    expect(await readFile(join(other!, 'b'), 'utf8')).toBe('1\n')
    const refused = await run('--add-dir', '../none', 'true')
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('cli/none is not a directory')])
    const server = await run('--add-dir', '/proc/self', 'true')
    expect(server.stderr).toMatch(/--add-dir \/proc\/\d+ is refused: it is in \/proc/)
  } finally {
    await model.close()
  }
})
