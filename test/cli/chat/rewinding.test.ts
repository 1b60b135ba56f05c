/** Going back in the chat: messages and files, in a real terminal with a real server. */
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../../support/agent.ts'
import { bash, setStage } from '../../support/agent.ts'
import { openChatOn } from './support/chat-on.ts'
import { KEYS } from './support/terminal.ts'

/** At the same moment, however loaded the machine is. */
const TWICE = KEYS.escape + KEYS.escape

let stage: Stage
beforeAll(async () => {
  const replies = [
    { when: 'write one', turns: [bash('echo one > notes.txt'), { text: 'Wrote one.' }] },
    { when: 'write two', turns: [bash('echo two > notes.txt; echo new > added.txt'), { text: 'Wrote two.' }] },
    { turns: [{ text: 'Hello.' }] },
  ]
  stage = await setStage({ replies })
})
afterAll(() => stage[Symbol.asyncDispose]())

/** A chat whose agent has written two versions of a file. */
async function openWritten(fields: object = { file_checkpointing: true }) {
  const terminal = await openChatOn(stage, { ...fields })
  for (const version of ['one', 'two']) {
    await terminal.say(`write ${version}`)
    await terminal.shows(`Wrote ${version}.`)
    await terminal.hides('Esc interrupts')
  }
  const { workdir } = (await stage.server.call('GET', `/conversations/${terminal.id}`)).body
  const files = async () => {
    const names = (await readdir(workdir)).toSorted()
    return Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await readFile(join(workdir, name), 'utf8')] as const)),
    )
  }
  const lastRequest = () => JSON.stringify(stage.model.requests.at(-1)!.messages)
  return Object.assign(terminal, {
    files,
    lastRequest,
    write: (name: string) => writeFile(join(workdir, name), 'mine\n'),
  })
}

test('/diff shows what the last run has changed, and /undo takes the last message and its files back', async () => {
  await using chat = await openWritten()
  await chat.say('/diff')
  await chat.shows(/changed 2 files: 2 lines added, 1 removed\.[\s\S]*\+new[\s\S]*-one\n *\+two/)
  await chat.say('/undo')
  await chat.shows(/Taken back: write two\n *1 file restored: notes\.txt\. 1 file removed: added\.txt\./)
  expect(await chat.files()).toEqual({ 'notes.txt': 'one\n' })
  await chat.say('hi')
  await chat.shows('Hello.')
  expect(chat.lastRequest()).toContain('write one')
  expect(chat.lastRequest()).not.toMatch(/write two|Wrote two/)
  // The message before it is the last one now, after the one that was just sent.
  await chat.say('/undo')
  await chat.shows('Taken back: hi')
  await chat.say('/undo')
  await chat.shows('Taken back: write one')
  expect(await chat.files()).toEqual({})
  await chat.say('/undo')
  await chat.shows('There is no message to take back.')
})

test('/undo leaves files alone that somebody else has changed since, unless it is forced', async () => {
  await using chat = await openWritten()
  await chat.write('notes.txt')
  await chat.say('/undo')
  await chat.shows(/Error: [\s\S]*notes\.txt/)
  expect(await chat.files()).toEqual({ 'added.txt': 'new\n', 'notes.txt': 'mine\n' })
  await chat.say('/undo force')
  await chat.shows('Taken back: write two')
  expect(await chat.files()).toEqual({ 'notes.txt': 'one\n' })
})

test('/rewind offers the messages, shows what would change, and restores the files alone, or nothing', async () => {
  await using chat = await openWritten()
  await chat.say('/rewind')
  await chat.shows(/Which message is taken back[\s\S]*1\. write two[\s\S]*2\. write one[\s\S]*Enter or a number shows/)
  chat.press('2')
  await chat.shows(
    /What goes back to before "write one"\?[\s\S]*2 files removed: added\.txt, notes\.txt\.[\s\S]*Enter or a number does/,
  )
  chat.press(KEYS.escape)
  await chat.hides('What goes back')
  expect(await chat.files()).toEqual({ 'added.txt': 'new\n', 'notes.txt': 'two\n' })
  await chat.say('/rewind')
  await chat.shows('Enter or a number shows')
  chat.press('1')
  await chat.shows(/What goes back to before "write two"\?[\s\S]*Enter or a number does/)
  chat.press('2')
  await chat.hides('What goes back')
  await chat.shows('1 file restored: notes.txt. 1 file removed: added.txt.')
  expect(await chat.files()).toEqual({ 'notes.txt': 'one\n' })
  await chat.say('hi')
  await chat.shows('Hello.')
  expect(chat.lastRequest()).toContain('write two')
})

test('Esc twice in an empty prompt opens the list of /rewind, which shows how much each message has changed', async () => {
  await using chat = await openWritten()
  chat.press('a draft')
  await chat.shows('a draft')
  chat.press(TWICE, KEYS.ctrlC)
  await chat.hides('a draft')
  expect(chat.text).not.toContain('Which message is taken back')
  chat.press(TWICE)
  await chat.shows(/1\. write two[^\n]*\n?[^\n]*2 files \+2 -1[\s\S]*2\. write one[^\n]*\n?[^\n]*1 file \+1 -0/)
  chat.press(KEYS.escape)
  await chat.hides('Which message is taken back')
  expect(await chat.files()).toEqual({ 'added.txt': 'new\n', 'notes.txt': 'two\n' })
})

test('without snapshots of the files, /undo takes the conversation back, and /diff says what is missing', async () => {
  await using chat = await openWritten({})
  await chat.say('/diff')
  await chat.shows(/Error: .*snapshot/i)
  await chat.say('/undo')
  await chat.shows('Taken back: write two')
  expect(await chat.files()).toEqual({ 'added.txt': 'new\n', 'notes.txt': 'two\n' })
})
