/** The longest time for which one answer of a model holds the event loop: the largest answers, of what takes the longest to decide. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KEY, URL, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'

const CALLS = 64
/** The length of the arguments of one call: together just below the limit of an answer, 4 MiB. */
const CHARS = 62_000
/** The number of values in the arguments of all calls: just below the limit of an answer. */
const VALUES = 99_000

const zeros = (length: number): number[] => Array.from({ length }, () => 0)
const filled = (piece: string): string => piece.repeat(Math.floor(CHARS / piece.length))
const numbered = (piece: (at: number) => string): string =>
  Array.from({ length: CHARS / piece(1000).length }, (_, at) => piece(at)).join('')

const COMMANDS: Readonly<Record<string, string>> = {
  words: `cat ${filled('a ')}`,
  'a launcher': `sudo ${filled('a ')}`,
  paths: `cat ${numbered((at) => `../x${at} `)}`,
  'long paths': `cat ${numbered((at) => `${'/tmp/..'.repeat(500)}/x${at} `)}`,
  globs: `cat ${numbered((at) => `*${at}*/x `)}`,
  redirections: `cat ${numbered((at) => `<f${at} `)}`,
  commands: 'cat x y z;'.repeat(299),
  'substitutions in substitutions': `${'$('.repeat(400)}${filled('x ').slice(1200)}${')'.repeat(400)}`,
  braces: filled('{ '),
  'a long word': `cat ${filled('*a')}`,
}

type Call = { readonly name: string; readonly arguments: string }

const calls = (name: string, input: object, count = CALLS): Call[] =>
  Array.from({ length: count }, () => ({ name, arguments: JSON.stringify(input) }))

const ANSWERS: Readonly<Record<string, readonly Call[]>> = {
  ...Object.fromEntries(Object.entries(COMMANDS).map(([name, command]) => [name, calls('Bash', { command })])),
  'one long input': calls('Write', { file_path: 'x', content: filled('a\n').repeat(CALLS - 2) }, 1),
  'long inputs': calls('Edit', { file_path: filled('a/'), old_string: 'x', new_string: 'y' }),
  'patterns of a search': calls('Grep', { pattern: filled('(a*'), path: filled('../'), glob: filled('{a,') }),
  'small values': calls('Bash', { command: 'x', more: zeros(VALUES / CALLS) }),
  'many names': calls('Bash', {
    command: 'x',
    more: Object.fromEntries(zeros(VALUES / CALLS / 2).map((_, at) => [at, 0])),
  }),
  'values of the wrong type': calls('MultiEdit', { file_path: 'x', edits: zeros(VALUES / CALLS) }),
  'values of the wrong type in one call': calls('MultiEdit', { file_path: 'x', edits: zeros(VALUES / 2) }, 1),
  'names in one call': calls(
    'Write',
    { file_path: 'x', content: Object.fromEntries(zeros(VALUES / 4).map((_, at) => [`name ${at}`, 0])) },
    1,
  ),
  'arguments of invalid JSON': Array.from({ length: CALLS }, () => ({ name: 'Bash', arguments: filled('[ ') })),
}

const DENY = ['Read(./.env)', 'Read(**/*.pem)', 'Edit(//etc/**)', 'Bash(git push:*)', 'Bash(*a*b*c*d*e*)']
const RULES = { deny: [...DENY, ...Array.from({ length: 250 }, (_, at) => `Read(./secret${at}/**/*.a*b*c)`)] }
export async function benchHostileAnswers(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-hostile-'))
  await using model = await startModel()
  const { kill } = await startServerProcess(home)
  try {
    let [worst, name] = [0, '']
    for (const answer of Object.keys(ANSWERS)) {
      const ms = await longestBlock(model.url, answer)
      if (ms > worst) [worst, name] = [ms, answer]
    }
    const what = `the longest block of the event loop by an answer of ${CALLS} calls and 4 MB`
    return [[what, `${worst.toFixed(0)} ms`, `${Object.keys(ANSWERS).length} answers; the longest: ${name}`]]
  } finally {
    await kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function longestBlock(base_url: string, answer: string): Promise<number> {
  const made = await send(`${URL}/conversations`, {
    llm_config: { model: answer, base_url, api_key: 'bench-model-key' },
    tools: ['Bash', 'Write', 'Edit', 'MultiEdit', 'Grep'],
    // Commands are decided, and do not run; other calls run, and fail.
    ...(answer in COMMANDS && { permission_mode: 'plan', permission_rules: RULES }),
  })
  const { id } = JSON.parse(made) as { id: string }
  await blockSince()
  await send(`${URL}/conversations/${id}/messages`, { message: { role: 'user', content: 'go' }, run: true })
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    const { status } = (await get(`/conversations/${id}`)) as { status: string }
    if (status !== 'running') break
  }
  const ms = await blockSince()
  await fetch(`${URL}/conversations/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${KEY}` } })
  return ms
}

/** Returns the longest block since the last question, in milliseconds. */
async function blockSince(): Promise<number> {
  const text = await (await fetch(`${URL}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })).text()
  return Number(/^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(text)?.[1]) * 1000
}

async function get(path: string): Promise<unknown> {
  return await (await fetch(`${URL}${path}`, { headers: { authorization: `Bearer ${KEY}` } })).json()
}

/** Says the answer that the name of the model asks for, and a text after it. */
async function startModel() {
  const server = http.createServer((request, response) => void answerTo(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function answerTo(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  let text = ''
  for await (const piece of request.setEncoding('utf8')) text += piece as string
  const { model, messages } = JSON.parse(text) as { model: string; messages: { role: string }[] }
  const isFirst = messages.every(({ role }) => role !== 'tool')
  const say = (delta: object, finish_reason: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
    )
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (isFirst) {
    for (const [index, call] of ANSWERS[model]!.entries())
      say({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: call }] })
  } else say({ content: 'Done.' })
  say({}, isFirst ? 'tool_calls' : 'stop')
  response.end('data: [DONE]\n\n')
}
