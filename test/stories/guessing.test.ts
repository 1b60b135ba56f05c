/** An agent that prints how a key may begin and watches what becomes of it learns nothing: every guess is shown alike. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { subscribe } from '../support/stream.ts'
import { requireSandbox } from '../support/require-sandbox.ts'

const random = (prefix: string) => prefix + randomBytes(24).toString('base64url')

const SECRET_KEY = random('sec-')
const DEFAULT_LLM_KEY = random('default-')
const LLM_KEY = random('sk-')
const HEADER = random('hdr-')
const OWN = random('ghp_')

/** A command prints so many characters of each. If only the right ones were held back, this would show that they are right. */
const GUESS_LENGTH = 15
const SERVER_KEYS = { KEY, SECRET_KEY, DEFAULT_LLM_KEY, LLM_KEY, HEADER }
const GUESSES = [...Object.values(SERVER_KEYS), random('other-'), random('')].map((key) => key.slice(0, GUESS_LENGTH))

const ENV = {
  OPENHANDS_ISOLATION: 'bubblewrap',
  OPENHANDS_SECRET_KEY: SECRET_KEY,
  LLM_API_KEY: DEFAULT_LLM_KEY,
}

/** In the background: prints the file as soon as it is there, without a line break behind it, and goes on. */
const printer = (name: string) =>
  `{ until [ -e ${name} ]; do sleep 0.02; done; cat ${name}; exec sleep 600; } & sleep 0.1`

/** Asks each printer for its guess, and tells what of it is in the printer's own output soon after, and whether all is in the end. */
const watcher = (paths: readonly string[], guesses: readonly string[]) => `
paths=(${paths.join(' ')}); guesses=(${guesses.map((guess) => `"${guess}"`).join(' ')})
sizes() { stat -c %s "\${paths[@]}"; }
before=($(sizes)); started=$(date +%s%N)
for i in "\${!guesses[@]}"; do printf %s "\${guesses[i]}" > .part; mv .part "go$i"; done
sleep 0.3
soon=($(sizes)); waited=$(( ($(date +%s%N) - started) / 1000000 ))
for ((try = 0; try < 300; try++)); do
  all=($(sizes)); missing=0
  for i in "\${!guesses[@]}"; do [ $((all[i] - before[i])) -ge "\${#guesses[i]}" ] || missing=1; done
  [ $missing = 0 ] && break
  sleep 0.1
done
for i in "\${!guesses[@]}"; do echo "$((soon[i] - before[i])) $waited $((all[i] - before[i]))"; done`

type Seen = { readonly soon: number; readonly waited: number; readonly all: number }

/** It says this, and neither goes on nor ends. */
const begun = (content: string) => ({
  raw: [`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`],
  hang: true,
})

const script: Script = ({ body }) => {
  const { role, content } = body.messages.at(-1)!
  if (role !== 'user') return { text: 'Done.' }
  const said = String(content)
  return said.startsWith('say ') ? begun(said.slice(4)) : bash(said, { timeout: 600 })
}

beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'agent-server-wall-'))
  try {
    await requireSandbox({ dataDir: directory, workdirBase: directory })
  } finally {
    await rm(directory, { recursive: true })
  }
})

async function setScene(secrets: Record<string, string>) {
  const stage = await setStage(script, { env: ENV })
  const id = await stage.create({
    secrets,
    llm_config: {
      model: 'scripted',
      base_url: stage.model.baseUrl,
      api_key: LLM_KEY,
      extra_headers: { 'x-custom': HEADER },
    },
  })
  const run = async (command: string) => {
    const events = await stage.say(id, command)
    return events.find((event) => event.type === 'ToolResult').output
  }
  /** What an agent sees of its guesses, in the order of them. */
  const watch = async (guesses: readonly string[]): Promise<Seen[]> => {
    const paths: string[] = []
    for (const i of guesses.keys()) {
      const { note } = await run(printer(`go${i}`))
      const path = /goes to (\S+\.log)/.exec(note)?.[1]
      if (path === undefined) throw new Error(`no output in the background: ${note}`)
      paths.push(path)
    }
    const { stdout } = await run(watcher(paths, guesses))
    return stdout
      .trim()
      .split('\n')
      .map((line: string) => line.split(' ').map(Number))
      .map(([soon, waited, all]: number[]) => ({ soon, waited, all }))
  }
  return Object.assign(stage, { id, run, watch })
}

describe('in the output of a process in the background', () => {
  test('each guess is shown at once, whether or not a server key begins like it', async () => {
    await using scene = await setScene({})
    const seen = await scene.watch(GUESSES)
    expect(seen.map(({ all }) => all)).toEqual(GUESSES.map((guess) => guess.length))
  }, 300_000)

  test('each guess is held back as long, also of a secret of the conversation', async () => {
    await using scene = await setScene({ GITHUB_TOKEN: OWN })
    // The shell would write the value itself: a part of it is no secret to the redactor, and goes out as it is.
    const guesses = [OWN.slice(0, GUESS_LENGTH), ...GUESSES]
    const seen = await scene.watch(guesses)
    expect(seen.map(({ all }) => all)).toEqual(guesses.map((guess) => guess.length))
    // On a machine that was busy for longer than what is held back is held, this tells nothing.
    for (const { soon, waited } of seen) if (waited < 1500) expect(soon).toBe(0)
  }, 300_000)
})

test('in the result of a command and in its deltas each guess is whole', async () => {
  await using scene = await setScene({ GITHUB_TOKEN: OWN })
  const guesses = [OWN.slice(0, GUESS_LENGTH), ...GUESSES]
  const stream = await subscribe(scene.server.url, `/conversations/${scene.id}/events/stream?deltas=true`)
  for (const guess of guesses) {
    expect((await scene.run(`printf %s ${guess}`)).stdout).toBe(guess)
    expect(
      (await scene.run(`for i in {1..4000}; do echo 123456; done; printf %s ${guess}`)).stdout.slice(-guess.length),
    ).toBe(guess)
  }
  const shown = stream.frames.filter(({ event }) => event === 'ToolOutputDelta').map(({ data }) => data.text)
  for (const guess of guesses) expect(shown.join('').split(guess).length).toBe(3)
  stream.close()
}, 300_000)

test('in a model’s stream each guess is shown before it continues', async () => {
  await using scene = await setScene({})
  for (const guess of GUESSES) {
    const id = await scene.create({
      llm_config: {
        model: 'scripted',
        base_url: scene.model.baseUrl,
        api_key: LLM_KEY,
        extra_headers: { 'x-custom': HEADER },
      },
    })
    const stream = await subscribe(scene.server.url, `/conversations/${id}/events/stream?deltas=true`)
    const message = { role: 'user', content: `say ${guess}` }
    await scene.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
    const said = () =>
      stream.frames
        .filter(({ event }) => event === 'AssistantDelta')
        .map(({ data }) => data.text_delta ?? '')
        .join('')
    await stream.until(() => said().includes(guess), 60_000)
    expect(said()).toContain(guess)
    stream.close()
  }
}, 300_000)

test('a master key that can be guessed is warned of at the start, without the key, and a random one is not', async () => {
  const warnings = async (key: string) => {
    await using stage = await setStage(script, { env: { OPENHANDS_MASTER_KEY: key } })
    return stage.server
      .output()
      .split('\n')
      .filter((line) => line.includes('can be guessed'))
  }
  const [warning, ...more] = await warnings(KEY)
  expect(JSON.parse(warning!)).toMatchObject({ level: 'warn', msg: expect.stringContaining('OPENHANDS_MASTER_KEY') })
  expect(warning).not.toContain(KEY.slice(0, 8))
  expect(more).toEqual([])
  expect(await warnings(randomBytes(32).toString('hex'))).toEqual([])
})
