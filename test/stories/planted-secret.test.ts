/** A secret in every place where it could come to light, and it is nowhere to be found. */
import { randomBytes } from 'node:crypto'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { bash, setStage } from '../support/agent.ts'
import type { Stage } from '../support/agent.ts'
import type { Evidence } from '../support/leaks.ts'
import { findLeaks } from '../support/leaks.ts'
import { KEY } from '../support/server.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { until } from '../support/until.ts'

const random = (prefix: string) => prefix + randomBytes(24).toString('base64url')

const TOKEN = random('ghp_')
const SECRETS = {
  GITHUB_TOKEN: TOKEN,
  TRICKY: `${random('p"a\\s')}/+%&é'$x y`,
  PEM: `-----BEGIN PRIVATE KEY-----\n${random('MII')}\n${random('Zk')}\n-----END PRIVATE KEY-----\n`,
  LONG: random('github_pat_') + random('_') + random('_'),
}
const LLM_KEY = random('sk-')
const HEADER = random('hdr-')
const SERVER_SECRETS = {
  OPENHANDS_SECRET_KEY: random('sec-'),
  LLM_API_KEY: random('default-'),
  OPENHANDS_LOG_LLM_PAYLOADS: 'true',
  OPENHANDS_LOG_LEVEL: 'DEBUG',
}
const PLANTED = {
  ...SECRETS,
  LLM_KEY,
  HEADER,
  KEY,
  SECRET_KEY: SERVER_SECRETS.OPENHANDS_SECRET_KEY,
  DEFAULT_KEY: SERVER_SECRETS.LLM_API_KEY,
}

const unicode = (text: string) =>
  Array.from(text, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
const pieces = (text: string, size = 5) =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size))

/** Chunks that cut what is said into pieces of a few characters. */
function inPieces(
  fields: { content?: string; reasoning_content?: string; arguments?: string },
  end: string,
): ScriptedTurn {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const deltas = [
    ...pieces(fields.reasoning_content ?? '').map((text) => ({ reasoning_content: text })),
    ...pieces(fields.content ?? '').map((text) => ({ content: text })),
    ...pieces(fields.arguments ?? '').map((text, at) => ({
      tool_calls: [
        {
          index: 0,
          ...(at === 0 && { id: `call-${TOKEN}`, type: 'function' }),
          function: { ...(at === 0 && { name: 'Bash' }), arguments: text },
        },
      ],
    })),
  ]
  return { raw: [...deltas.map((delta) => chunk(delta)), chunk({}, end), 'data: [DONE]\n\n'] }
}

const NODE = JSON.stringify(process.execPath)
const COMMANDS = [
  // Cut over reads, on both streams.
  'printf %s "${GITHUB_TOKEN:0:10}"; sleep 0.15; printf %s "${GITHUB_TOKEN:10:9}"; sleep 0.15; echo "${GITHUB_TOKEN:19}"',
  'for ((i = 0; i < ${#TRICKY}; i++)); do printf %s "${TRICKY:i:1}" >&2; done; for ((i = 0; i < ${#LONG}; i++)); do printf %s "${LONG:i:1}"; done',
  // As programs write it.
  'env; export -p; declare -p TRICKY; set | head -200; set -x; echo "$TRICKY" "$PEM"; set +x; printf "%q\\n" "$TRICKY" "$PEM"',
  'for v in GITHUB_TOKEN TRICKY PEM LONG; do printf %s "${!v}" | base64; printf x%s "${!v}" | base64 -w0; echo; printf xy%s "${!v}" | base64 | tr +/ -_; done',
  `${NODE} -e 'for (const n of ["GITHUB_TOKEN","TRICKY","PEM","LONG"]) { const v = process.env[n]; console.log(JSON.stringify({v}), JSON.stringify(JSON.stringify({v})), encodeURIComponent(v), new URLSearchParams({v}), encodeURIComponent(v).replaceAll(/%../g, (c) => c.toLowerCase()), encodeURIComponent(JSON.stringify({v}))); console.error(new Error(v)) }'`,
  // More than a result holds: the whole goes to a file.
  'for i in {1..4000}; do echo "$i $GITHUB_TOKEN and then $LONG"; done; for i in {1..4000}; do echo "$i $TRICKY" >&2; done',
  // The background, cut by the end of the command.
  'echo started; (printf %s "${GITHUB_TOKEN:0:20}"; sleep 0.3; echo "${GITHUB_TOKEN:20}"; echo "$TRICKY" "$PEM") & sleep 0.1',
  'sleep 0.5; printf %s "$PEM" > key.pem; cat key.pem; cat -n key.pem; grep -n . key.pem; head -2 key.pem | tail -1; rm key.pem',
  // What the shell itself remembers.
  'export COPY="copy of $GITHUB_TOKEN"; remember() { echo "$COPY"; }; PLAIN=$TRICKY; remember; alias again="echo $GITHUB_TOKEN"; cd /tmp; cd "$OLDPWD"',
  'git init -q repo; cd repo; printf "protocol=https\\nhost=github.com\\n\\n" | git credential fill; git config --list; cat .git/config; cd ..',
  'sleep 600 & until [ -e go ]; do sleep 0.02; done; kill $!',
  'cat /no/such/"$GITHUB_TOKEN"; "./$GITHUB_TOKEN"; cd "/no/$TRICKY"; ulimit -z "$LONG"; exit 3',
]

/** The editor on files that hold it, also where a line is cut off and what an edit keeps for its undoing. */
const EDITS: ScriptedTurn[] = [
  bash(
    'printf "%s\\n" "key $GITHUB_TOKEN" "$PEM" "$TRICKY" > kept.txt; printf "%3980s%s%500s\\nend\\n" "" "$LONG" "" > wide.txt; printf "\\x89PNG\\r\\n\\x1a\\n%s" "$LONG" > odd.png',
  ),
  ...[
    { command: 'view', path: 'kept.txt' },
    { command: 'str_replace', path: 'kept.txt', old_str: 'key ', new_str: 'token: ' },
    { command: 'insert', path: 'kept.txt', insert_line: 1, new_str: 'a line' },
    { command: 'undo_edit', path: 'kept.txt' },
    { command: 'str_replace', path: 'kept.txt', old_str: TOKEN, new_str: SECRETS.LONG },
    { command: 'view', path: 'wide.txt' },
    { command: 'view', path: 'odd.png' },
  ].map((input) => ({ calls: [{ name: 'FileEditor', arguments: input }] })),
]

/** What the user asks for -> what the model does about it. */
function script({ body, attempt }: ScriptedQuestion): ScriptedTurn {
  const last = body.messages.findLastIndex(({ role }) => role === 'user')
  const asked = JSON.stringify(body.messages[last]?.content)
  const step = body.messages.slice(last).filter(({ role }) => role === 'assistant').length
  const said = `It is ${TOKEN}, ${SECRETS.TRICKY} and ${LLM_KEY}.`
  if (asked.includes('work')) return step < COMMANDS.length ? bash(COMMANDS[step]!) : { text: 'Done.' }
  if (asked.includes('edit')) return EDITS[step] ?? { text: 'Edited.' }
  if (asked.includes('talk')) return inPieces({ reasoning_content: `I think ${said}`, content: said }, 'stop')
  if (asked.includes('call')) {
    const calls: ScriptedTurn[] = [
      inPieces({ arguments: `{"command": "echo ${unicode(TOKEN)} $GITHUB_TOKEN"}` }, 'tool_calls'),
      inPieces(
        {
          arguments: JSON.stringify({
            command: `echo '${SECRETS.LONG}' ${Buffer.from(TOKEN).toString('base64')} ${encodeURIComponent(SECRETS.TRICKY)}`,
          }),
        },
        'tool_calls',
      ),
      inPieces({ arguments: `{"command": "echo ${TOKEN}` }, 'tool_calls'),
      { calls: [{ name: `Bash-${TOKEN}`, arguments: { [TOKEN]: TOKEN }, id: `id-${LLM_KEY}` }] },
      { calls: [{ name: 'Bash', arguments: { [SECRETS.LONG]: { deep: [SECRETS.TRICKY] }, command: 7 } }] },
    ]
    return calls[step] ?? { text: 'Called.' }
  }
  if (asked.includes('refuse'))
    return {
      status: 401,
      error: { message: `Incorrect API key provided: ${LLM_KEY}; headers ${HEADER}; ${'x'.repeat(380)} ${TOKEN}` },
    }
  if (asked.includes('page'))
    return { raw: [`${'x'.repeat(80)} ${TOKEN} is what you sent, and ${HEADER}`], status: 200 }
  if (asked.includes('break'))
    return { text: `So far ${TOKEN.slice(0, 20)}`, error: { message: `failed at ${LLM_KEY} ${SECRETS.TRICKY}` } }
  if (asked.includes('cut')) return { text: said, cut_after: 9 }
  if (asked.includes('again'))
    return attempt === 0 ? { status: 500, error: { message: TOKEN } } : { text: said, finish_reason: TOKEN }
  return { text: 'Yes.' }
}

/** Everything that was answered, streamed or sent to the model. */
function witness(stage: Stage) {
  const evidence: Evidence[] = []
  const { server } = stage
  return {
    evidence,
    call: async (
      method: string,
      path: string,
      body?: unknown,
      headers: Record<string, string> = {},
    ): Promise<Response> => {
      const response = await fetch(server.url + path, {
        method,
        headers: {
          authorization: `Bearer ${KEY}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await response.clone().text()
      evidence.push({
        where: `${method} ${path.slice(0, 60)}: ${response.status}`,
        text: `${text} ${JSON.stringify([...response.headers])}`,
      })
      return response
    },
    /** Until its signal ends it. */
    async follow(id: string, signal: AbortSignal) {
      const response = await fetch(`${server.url}/conversations/${id}/events/stream?after_seq=0&deltas=true`, {
        headers: { authorization: `Bearer ${KEY}` },
        signal,
      })
      const seen = { where: 'the stream', text: '' }
      evidence.push(seen)
      const done = (async () => {
        try {
          for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) seen.text += chunk
        } catch {
          // The signal, or the end of the server.
        }
      })()
      return { seen, done }
    },
    async look(where: string) {
      evidence.push({ where: `${where}: what the server said`, text: server.output() })
      for (const request of stage.model.requests)
        evidence.push({ where: `${where}: a request to the model`, text: request.text })
      evidence.push(
        ...(await filesBelow(server.dataDir)).map((file) => ({ ...file, where: `${where}: ${file.where}` })),
      )
    },
  }
}

/** The workdirs, and its home in a sandbox, are the agent's own, and `secrets.enc` is encrypted. Fifos would hold the reader. */
async function filesBelow(directory: string): Promise<Evidence[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter(
    (entry) => entry.isFile() && entry.name !== 'secrets.enc' && !/\/data\/work|\/private(\/|$)/.test(entry.parentPath),
  )
  const read = files.map(async (entry) => {
    const path = join(entry.parentPath, entry.name)
    return { where: path, text: `${path}\n${await readFile(path, 'utf8').catch(() => '')}` }
  })
  return Promise.all(read)
}

/** The command lines of a process and of all that it has started: other programs of the machine may have the same key. */
async function commandLinesOf(pid: number): Promise<Evidence[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const parents = new Map<number, number>()
  for (const id of ids) {
    const status = await readFile(`/proc/${id}/status`, 'utf8').catch(() => '')
    parents.set(Number(id), Number(/^PPid:\s+(\d+)/m.exec(status)?.[1] ?? 0))
  }
  const isOfServer = (id: number): boolean => id === pid || (id > 1 && isOfServer(parents.get(id) ?? 0))
  return Promise.all(
    ids
      .filter((id) => isOfServer(Number(id)))
      .map(async (id) => ({
        where: `/proc/${id}/cmdline`,
        text: await readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => ''),
      })),
  )
}

test('a planted secret is nowhere: not in events, streams, answers, logs, files, processes, nor in what the model is sent', async () => {
  await using stage = await setStage(script, { env: SERVER_SECRETS })
  const { server, model } = stage
  const seen = witness(stage)
  const { call } = seen
  const llm_config = {
    model: 'scripted',
    base_url: model.baseUrl,
    api_key: LLM_KEY,
    extra_headers: { 'x-custom': HEADER },
    num_retries: 1,
  }
  const secretText = `${TOKEN} ${SECRETS.TRICKY} ${LLM_KEY} ${HEADER} ${KEY} ${SERVER_SECRETS.LLM_API_KEY} ${SERVER_SECRETS.OPENHANDS_SECRET_KEY}`

  const created = await call('POST', '/conversations', {
    llm_config,
    secrets: { GITHUB_TOKEN: TOKEN, TRICKY: SECRETS.TRICKY },
    title: `About ${TOKEN}`,
    user_id: TOKEN,
    metadata: { note: secretText, [TOKEN]: [SECRETS.TRICKY] },
    system_prompt_extensions: [secretText],
    microagents: [secretText],
    initial_message: { role: 'user', content: secretText, sender: TOKEN },
    visualize: true,
  })
  expect(created.status).toBe(201)
  const { id, workdir } = (await created.json()) as { id: string; workdir: string }
  const path = `/conversations/${id}`
  const put = await call('PUT', `${path}/secrets`, { secrets: SECRETS })
  expect(await put.json()).toEqual({ items: ['GITHUB_TOKEN', 'LONG', 'PEM', 'TRICKY'], next_page_id: null })

  const stop = new AbortController()
  const live = await seen.follow(id, stop.signal)
  const runs = { ends: 0 }
  const say = async (text: string, during?: () => Promise<void>) => {
    const posted = await call('POST', `${path}/messages`, {
      message: { role: 'user', content: `${text} ${secretText}`, sender: SECRETS.LONG },
    })
    expect(posted.status).toBe(202)
    const running = call('POST', `${path}/run`, { wait: true, timeout: PATIENCE_S })
    await during?.()
    const outcome = (await (await running).json()) as { status: string }
    runs.ends++
    return outcome
  }

  expect(
    await say('work', async () => {
      await until('the command', async () => {
        const commandLines = await commandLinesOf(stage.server.pid)
        const runs = commandLines.some(({ text }) => text.includes('sleep\u0000600'))
        if (runs) seen.evidence.push(...commandLines)
        return runs
      })
      await seen.look('while it works')
      await writeFile(join(workdir, 'go'), '')
    }),
  ).toMatchObject({ status: 'idle' })
  await say('talk')
  await say('edit')
  await say('call')
  for (const trouble of ['refuse', 'page', 'break', 'cut', 'again']) await say(trouble)

  // Requests that are wrong, with the secret where a name or a value belongs.
  const bodies = [
    { [TOKEN]: 1 },
    { message: { role: TOKEN, content: TOKEN } },
    { message: { role: 'user', content: [{ type: TOKEN }] }, [TOKEN]: TOKEN },
    `{"a": ${TOKEN}`,
    { title: secretText.repeat(9) },
    { secrets: { [TOKEN]: 'NAME' } },
    { secrets: { NAME: { [TOKEN]: 1 } } },
    { secrets: { PATH: TOKEN, 'not a name': TOKEN } },
    { llm_config: { [TOKEN]: TOKEN } },
    { llm_config: { base_url: `http://127.0.0.1:9/${TOKEN}` } },
    { llm_config: { extra_body: { key: TOKEN } } },
    { llm_config: { extra_headers: { [TOKEN]: 1 } } },
    { workdir: `/tmp/${TOKEN}` },
    { tools: [TOKEN] },
    { id: TOKEN },
    { max_steps: TOKEN },
  ]
  for (const body of bodies) {
    for (const [method, route] of [
      ['POST', '/conversations'],
      ['PUT', `${path}/config`],
      ['POST', `${path}/messages`],
      ['PUT', `${path}/secrets`],
      ['POST', `${path}/run`],
    ] as const) {
      const { status } = await call(method, route, body)
      expect(status, `${method} ${route} ${JSON.stringify(body).slice(0, 30)}`).toBe(400)
    }
  }
  const query = encodeURIComponent(TOKEN)
  for (const url of [
    `/conversations/${query}`,
    `/${query}`,
    `${path}/events?types=${query}`,
    `${path}/events?${query}=1`,
    `${path}/events?page_id=${query}`,
    `/conversations?page_id=${query}`,
    `/conversations?q=${query}`,
    `${path}/events/${query}`,
    `/conversations/%${TOKEN}`,
  ])
    await call('GET', url)
  await call('GET', `${path}/events/stream`, undefined, { 'last-event-id': TOKEN })
  await call('GET', '/info', undefined, { authorization: `Bearer ${TOKEN}` })
  await call('DELETE', `${path}/secrets/${query}`)
  const keyed = { 'idempotency-key': TOKEN }
  expect((await call('POST', `${path}/messages`, { message: { role: 'user', content: 'x' } }, keyed)).status).toBe(400)
  await call('POST', `${path}/reject`, { reason: secretText })
  await call('POST', `${path}/messages`, { message: { role: 'user', content: 'x' } }, { 'content-type': TOKEN })
  for (const route of [
    path,
    '/conversations',
    `${path}/secrets`,
    `${path}/events?limit=1000`,
    `${path}/events?limit=1000&order=desc`,
    '/info',
    '/openapi.json',
  ])
    await call('GET', route)
  await seen.look('at rest')
  await server.stop()
  await seen.look('stopped')
  await server.restart()
  expect(await say('talk')).toMatchObject({ status: 'idle' })
  expect(await say('work')).toMatchObject({ status: 'idle' })
  const names = await call('GET', `${path}/secrets`)
  expect(await names.json()).toMatchObject({ items: ['GITHUB_TOKEN', 'LONG', 'PEM', 'TRICKY'] })
  const all = await (await call('GET', `${path}/events?limit=1000`)).text()
  // New credentials, and a title that repeats them before they are known.
  const newKey = random('sk-new-')
  expect(
    (await call('PUT', `${path}/config`, { title: `now with ${newKey} ${TOKEN}`, llm_config: { api_key: newKey } }))
      .status,
  ).toBe(200)

  await call('GET', path)
  await seen.look('after a restart')
  stop.abort()
  await live.done

  expect(findLeaks({ ...PLANTED, NEW_KEY: newKey }, seen.evidence)).toEqual([])
  // It was all there to be found.
  expect(runs.ends).toBe(11)
  expect(model.requests[0]!.headers).toMatchObject({ authorization: `Bearer ${LLM_KEY}`, 'x-custom': HEADER })
  for (const name of Object.keys(SECRETS)) expect(all).toContain(`<secret:${name}>`)
  expect(all).toContain('password=<secret:GITHUB_TOKEN>')
  expect(live.seen.text).toContain('event: ToolOutputDelta')
  expect(seen.evidence.some(({ where }) => where.includes('/outputs/background/'))).toBe(true)
  expect(seen.evidence.filter(({ where }) => /outputs\/std(out|err)-/.test(where)).length).toBeGreaterThan(1)
  expect(seen.evidence.some(({ where, text }) => where.endsWith('/shells/agent/state') && text.includes('COPY='))).toBe(
    true,
  )
  await expect.poll(server.output).toContain('llm payload')
})
