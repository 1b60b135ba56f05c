/** A strange model that repeats itself with real tools, rules, hooks and subagents: it is advised, and its run ends if all fails. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { bash, setStage } from '../support/agent.ts'
import { asksForSummary } from '../support/chat-requests.ts'
import { subscribe } from '../support/stream.ts'
import { ofMain, ofSubagents, task } from '../support/subagents.ts'
import { answer } from './requests.ts'

type Loop = (n: number) => ScriptedTurn

const calling = (name: string, args: Record<string, unknown> | string = {}) => ({ name, arguments: args })
const word = (n: number) => Array.from(String(n), (digit) => 'abcdefghij'[Number(digit)]).join('')

/** What the model does after a message with this text, without end. */
const LOOPS: Record<string, Loop> = {
  'say hi': () => bash('echo hi'),
  'read a file': () => ({ calls: [calling('Read', { file_path: 'same.txt' })] }),
  'read two files': (n) => ({
    calls: [
      calling('Read', { file_path: n % 2 ? 'same.txt' : 'no.txt' }),
      calling('Read', { file_path: n % 2 ? 'no.txt' : 'same.txt' }),
    ],
  }),
  'write much': () => bash('seq 1 60000'),
  'start programs': () => bash('sleep 100 &'),
  'no JSON': () => ({ calls: [calling('Bash', '{ "command": ')] }),
  'no arguments': (n) => ({ calls: [calling(n % 2 ? 'Bash' : 'Read')] }),
  'no such tool': (n) => ({ calls: [calling(`Tool${word(n)}`, { n })] }),
  'no such file': (n) => ({ calls: [calling('Read', { file_path: `src/${word(n + 10)}.ts` })] }),
  'no such program': (n) => bash(`${word(n + 10)}x --version`),
  'three errors in turn': (n) => bash(['cat nowhere', 'ls --wrong', 'false'][n % 3]!),
  'do what rules deny': (n) => bash(`rm ${word(n)}`),
  'do what a hook denies': (n) => bash(`touch ${word(n)}`),
  'forget everything': (n) => bash(`head -c 4000 /dev/zero | tr '\\0' ${'xyz'[n % 3]}; false`),
  'ask the client': () => ({ calls: [calling('job_status')] }),
  'call for help': () => ({ calls: [task('never help')] }),
  'never help': () => bash('cat nowhere'),
}

const endOf = (events: readonly any[]) => events.find(({ type }) => type === 'Result') // eslint-disable-line typescript/no-explicit-any

const steps = new Map<string, number>()

const stage = await setStage((question) => {
  if (asksForSummary(question)) return { text: 'Nothing was done.' }
  const text = question.messages.map(({ content }) => JSON.stringify(content)).join('\n')
  const key = text.includes('You are a subagent')
    ? 'never help'
    : Object.keys(LOOPS).find((each) => text.includes(each))!
  const n = steps.get(key) ?? 0
  steps.set(key, n + 1)
  return LOOPS[key]!(n)
})
afterAll(() => stage[Symbol.asyncDispose]())

const DENY_TOUCH = `grep -q touch && { echo no touching >&2; exit 2; } || exit 0`
const HOOKS = { PreToolUse: [{ hooks: [{ type: 'command', command: DENY_TOUCH }] }] }
const tools = ['Bash', 'BashOutput', 'Read', 'Task']
/** More answers than advice needs, also where a call that takes a second on a loaded machine begins the count again. */
const MANY = 35

test.each<[string, number, object?]>([
  ['no JSON', 6],
  ['no arguments', 15],
  ['no such tool', 15],
  ['no such file', 15],
  ['no such program', 15],
  ['three errors in turn', 15],
  ['do what rules deny', 15, { disallowed_tools: ['Bash(rm:*)'] }],
  ['do what a hook denies', 15, { hooks: HOOKS }],
])('%s: the run ends after %i answers', async (text, after, fields = {}) => {
  const events = await stage.say(await stage.create({ tools, ...fields }), text)
  expect(endOf(events)).toMatchObject({ stop_reason: 'stuck', steps: after })
})

test.each(['say hi', 'read a file', 'read two files', 'write much', 'start programs'])(
  '%s: without any change the model is advised, and may continue',
  async (text) => {
    const id = await stage.create({ tools, max_iteration_per_run: MANY })
    const { body } = await stage.server.call('GET', `/conversations/${id}`)
    await writeFile(join(body.workdir, 'same.txt'), 'The same.\n')
    const events = await stage.say(id, text)
    expect(endOf(events)).toMatchObject({ stop_reason: 'iteration_limit', steps: MANY })
    const advised = events.filter(({ advice }) => advice !== undefined)
    expect(advised).toMatchObject([{ advice: expect.stringContaining('their results did not change') }])
  },
)

test('a subagent that is stuck fails, and so does an agent that calls it again and again', async () => {
  const agents = { worker: { description: 'Works.', prompt: 'You work.' } }
  const events = await stage.say(await stage.create({ tools, agents }), 'call for help')
  expect(ofSubagents(events, 'Result')).toHaveLength(15)
  expect(ofSubagents(events, 'Result').every(({ stop_reason, steps }) => stop_reason === 'stuck' && steps === 6)).toBe(
    true,
  )
  expect(ofMain(events, 'Result')).toMatchObject([{ stop_reason: 'stuck', steps: 15 }])
})

test('compactions do not begin the count again', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'any', context_window: 8000 }
  const events = await stage.say(await stage.create({ tools, llm_config }), 'forget everything')
  expect(events.filter(({ type }) => type === 'Condensation').length).toBeGreaterThan(3)
  expect(endOf(events).stop_reason).toBe('stuck')
})

test('a client whose tool always fails in the same way ends the run', async () => {
  const client_tools = [{ name: 'job_status', description: 'Returns it.', input_schema: { type: 'object' } }]
  const id = await stage.create({ tools: [], client_tools })
  const path = `/conversations/${id}`
  const stream = await subscribe(stage.server.url, `${path}/events/stream?types=RequestOpened,Result`)
  const message = { role: 'user', content: 'ask the client' }
  await stage.server.call('POST', `${path}/messages`, { message, run: true })
  let answered = 0
  for (let seen = 0; ;) {
    const { event, data } = await stream.until((frame) => frame.data.seq > seen)
    seen = data.seq
    if (event === 'Result') expect(data.stop_reason).toBe('stuck')
    if (event === 'Result') break
    const failure = { kind: 'client_tool', output: 'no such job', is_error: true }
    expect((await answer(stage.server.call, id, data.request_id, failure)).status).toBe(200)
    answered++
  }
  expect(answered).toBe(6)
  stream.close()
})

test('a run that continues after a kill of the server ends as well', async () => {
  const id = await stage.create({ tools, resume_on_start: true })
  const message = { role: 'user', content: 'no such program' }
  await stage.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
  const answers = async () => (await stage.events(id, 'types=AssistantMessage')).length
  await expect.poll(answers, { interval: 5 }).toBeGreaterThan(6)
  await stage.server.restart('SIGKILL')
  const results = () => stage.events(id, 'types=Result')
  await expect.poll(async () => (await results()).at(-1)?.stop_reason).toBe('stuck')
})
