// @ts-nocheck -- its packages are not those of this project
/** The headless client of the Agent Client Protocol, in front of `agent-server acp`. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import * as cases from './cases.ts'

const PROGRAM = join(import.meta.dirname, 'node_modules/acpx/dist/cli.js')
const AGENT = `${process.env.AGENT_SERVER_BIN} acp --server ${cases.URL_OF_SERVER}`
/** It keeps its sessions in the home directory. */
const HOME = join(import.meta.dirname, 'home')
mkdirSync(HOME)

function start(args, { cwd = newDirectory(), key = cases.KEY_OF_SERVER } = {}) {
  const all = ['--agent', AGENT, '--format', 'json', '--json-strict', '--cwd', cwd, '--ttl', '1', ...args]
  const env = { ...process.env, HOME, OPENHANDS_MASTER_KEY: key }
  const child = spawn(process.execPath, [PROGRAM, ...all], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const run = { output: '', errors: '', messages: () => messagesIn(run.output) }
  child.stdout.setEncoding('utf8').on('data', (text) => (run.output += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (run.errors += text))
  run.ended = new Promise((resolve) => void child.once('close', resolve))
  return run
}

async function run(args, options) {
  const running = start(args, options)
  const code = await running.ended
  return { code, messages: running.messages(), output: running.output + running.errors }
}

function newDirectory() {
  const directory = join(cases.HOME_OF_SERVER, crypto.randomUUID())
  mkdirSync(directory)
  return directory
}

/** Each whole line is a message. */
const messagesIn = (output) => output.split('\n').slice(0, -1).map(JSON.parse)

const textIn = (messages) =>
  messages
    .flatMap(({ params }) => params?.update ?? [])
    .flatMap(({ sessionUpdate, content }) => (sessionUpdate === 'agent_message_chunk' ? [content.text] : []))
    .join('')

const reasonIn = (messages) => messages.findLast(({ result }) => result?.stopReason)?.result.stopReason

async function answerTo(text, ...flags) {
  const { code, messages, output } = await run([...flags, 'exec', text])
  assert.equal(reasonIn(messages), 'end_turn', output)
  return { code, answer: textIn(messages) }
}

await cases.runCases({
  async text() {
    assert.deepEqual(await answerTo(cases.SLOWLY), { code: 0, answer: cases.WORDS })
  },
  async tool() {
    assert.match((await answerTo(cases.PLAN)).answer, /^I plan\.Read: /)
  },
  async allow() {
    const { answer } = await answerTo(cases.COMPUTE, '--approve-all')
    assert.match(answer.replace('I compute.', ''), cases.RESULT)
  },
  async deny() {
    const { answer } = await answerTo(cases.COMPUTE, '--deny-all')
    cases.assertDenied(answer.replace('I compute.', ''))
  },
  async mode() {
    const cwd = newDirectory()
    assert.equal((await run(['sessions', 'new'], { cwd })).code, 0)
    const set = await run(['set-mode', 'bypass'], { cwd })
    assert.equal(set.code, 0, set.output)
    const { messages, output } = await run(['--deny-all', 'prompt', cases.COMPUTE], { cwd })
    assert.match(textIn(messages).replace('I compute.', ''), cases.RESULT, output)
  },
  async cancel() {
    const cwd = newDirectory()
    assert.equal((await run(['sessions', 'new'], { cwd })).code, 0)
    const prompt = start(['prompt', cases.ENDLESS], { cwd })
    await cases.eventually(() => textIn(prompt.messages()).includes('word word'))
    const cancelled = await run(['cancel'], { cwd })
    assert.equal(cancelled.code, 0, cancelled.output)
    await prompt.ended
    assert.equal(reasonIn(prompt.messages()), 'cancelled', prompt.output + prompt.errors)
    let after = await run(['prompt', cases.HELLO], { cwd })
    // Its own process for the session of the prompt before may be ending: acpx says that one can try again.
    while (after.output.includes('QUEUE_OWNER_CLOSED')) after = await run(['prompt', cases.HELLO], { cwd })
    assert.equal(textIn(after.messages), cases.GREETING, after.output)
  },
  async 'wrong key'() {
    const { code, messages, output } = await run(['exec', cases.HELLO], { key: cases.WRONG_KEY })
    assert.notEqual(code, 0)
    assert.ok(
      messages.some(({ error }) => error?.code === -32_000),
      output,
    )
  },
})
