/** The first start of the chat in a terminal: without settings, with servers of the test for vendors and for this machine. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { freePort } from '../../support/server.ts'
import { KEYS } from '../chat/support/terminal.ts'
import type { Terminal } from '../chat/support/terminal.ts'
import { FirstStartHome, vendorAtPort } from './support/first-start-terminal.ts'
import type { ModelServer } from './support/model-server.ts'
import { listOf, startModelServer } from './support/model-server.ts'

let scripted: ScriptedModel
let vendor: ModelServer
beforeAll(async () => {
  scripted = await startScriptedModel({ replies: [{ turns: [{ text: 'Hello from this machine.' }] }] })
  vendor = await startModelServer((_path, key) =>
    key === 'Bearer sk-good' ? listOf('text-embedding-3-large', 'gpt-4.1', 'unheard-of') : [401, {}],
  )
})
afterAll(async () => {
  await scripted.close()
  await vendor[Symbol.asyncDispose]()
})

const onThisMachine = () => ({ localServers: [{ label: 'Ollama', port: Number(new URL(scripted.baseUrl).port) }] })
const atVendors = () => ({ vendors: [vendorAtPort(vendor.port), vendorAtPort(1, 'Other')] })

async function leave(terminal: Terminal): Promise<void> {
  await terminal.shows('/help lists')
  terminal.press(KEYS.ctrlD)
  expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true })
}

async function enterKey(terminal: Terminal, key: string): Promise<void> {
  await terminal.shows('API key of Example')
  terminal.press(key, KEYS.enter)
}

test.concurrent('a server of this machine comes first with its models, needs no key, and answers when it was chosen', async () => {
  using home = new FirstStartHome()
  const places = { ...onThisMachine(), ...atVendors() }
  await using terminal = home.start({ places })
  await terminal.shows(/Where is the model\?\n> Ollama on this machine +scripted\n +Example/)
  terminal.press(KEYS.enter)
  await terminal.shows(/Which model of Ollama on this machine\?\n> scripted/)
  terminal.press(KEYS.enter)
  await terminal.shows('Then model and base_url are in ~/.openhands/settings_sdk.json, which only you can read.')
  terminal.press(KEYS.enter)
  await terminal.shows('/help lists')
  await terminal.say('hi')
  await terminal.shows('Hello from this machine.')
  await leave(terminal)
  expect(home.settings).toEqual({ model: 'scripted', base_url: scripted.baseUrl })
  expect(home.mode).toBe('600')
  await using second = home.start({ places })
  await leave(second)
  expect(second.text).not.toContain('Where is the model?')
})

test.concurrent('a key is tried with the list of models, asked for again if it is refused, never shown, and hidden from agents', async () => {
  using home = new FirstStartHome()
  await using own = await startModelServer((_path, key) =>
    key === 'Bearer sk-good' ? listOf('text-embedding-3-large', 'gpt-4.1', 'unheard-of') : [401, {}],
  )
  await using terminal = home.start({ places: { vendors: [vendorAtPort(own.port)] } })
  await terminal.shows(`> Example           127.0.0.1:${own.port}`)
  terminal.press(KEYS.enter)
  await enterKey(terminal, 'sk-bad')
  await terminal.shows('Example refuses this key (401). Check that all of it was copied')
  // As a terminal pastes a line.
  terminal.press('\x1b[200~sk-good\n\x1b[201~', KEYS.enter)
  // Models for other work come last.
  await terminal.shows(/> gpt-4\.1 +1M tokens\n +unheard-of\n +text-embedding-3-large/)
  terminal.press(KEYS.enter)
  await terminal.shows('Then model, base_url and api_key are in ~/.openhands/settings_sdk.json')
  expect(existsSync(home.settingsPath)).toBe(false)
  terminal.press(KEYS.enter)
  await leave(terminal)
  expect(home.settings).toEqual({ model: 'gpt-4.1', base_url: `http://127.0.0.1:${own.port}/v1`, api_key: 'sk-good' })
  expect(home.mode).toBe('600')
  expect(own.asked).toEqual(['GET /v1/models Bearer sk-bad', 'GET /v1/models Bearer sk-good'])
  expect(terminal.output).not.toMatch(/sk-(bad|good)/)
  expect(readFileSync(join(home.path, 'data', 'hidden-files'), 'utf8')).toContain(home.settingsPath)
})

test.concurrent('without agreement nothing is written, and the answers hold until the chat ends', async () => {
  using home = new FirstStartHome()
  await using terminal = home.start({ places: onThisMachine() })
  await terminal.shows('> Ollama on this machine')
  terminal.press(KEYS.enter)
  await terminal.shows('Which model of Ollama')
  terminal.press(KEYS.enter)
  await terminal.shows('Keep this for the next time?')
  terminal.press(KEYS.down, KEYS.enter)
  await terminal.shows('/help lists')
  await terminal.say('hi')
  await terminal.shows('Hello from this machine.')
  await leave(terminal)
  expect(readdirSync(home.path).toSorted()).toEqual(['data', 'project'])
})

/** What leads to each question. */
const STEPS = {
  'Where is the model?': [],
  'API key of Example': [KEYS.enter],
  'Which model of Example?': [KEYS.enter, 'sk-good', KEYS.enter],
  'Keep this for the next time?': [KEYS.enter, 'sk-good', KEYS.enter, KEYS.enter],
  'URL of the endpoint': [KEYS.up, KEYS.enter],
}

describe.concurrent.each(Object.entries(STEPS))('at "%s"', (title, keys) => {
  async function reach(terminal: Terminal): Promise<void> {
    await terminal.shows('Where is the model?')
    for (const [at, key] of keys.entries()) {
      terminal.press(key)
      if (key === KEYS.enter && at < keys.length - 1)
        await terminal.shows(at === 0 ? 'API key of Example' : 'Which model of Example?')
    }
    await terminal.shows(title)
  }

  test.each([
    ['Esc', KEYS.escape, 2],
    ['Ctrl+C', KEYS.ctrlC, 130],
  ])(
    '%s leaves: the terminal is restored, and nothing is left on the screen or in the home',
    async (name, key, exitCode) => {
      using home = new FirstStartHome()
      await using terminal = home.start({ places: atVendors() })
      await reach(terminal)
      terminal.press(key)
      expect(await terminal.ended()).toEqual({ exitCode, isRestored: true })
      const advice = /agent-server: no model is set: give --model, set LLM_MODEL/.test(terminal.text)
      expect([name, advice]).toEqual([name, exitCode === 2])
      expect(terminal.text).not.toMatch(/Welcome|Where is|API key of|Which model|Keep this/)
      expect(
        readdirSync(home.path, { recursive: true, encoding: 'utf8' }).toSorted((a, b) => a.localeCompare(b)),
      ).toEqual(['data', 'project'])
    },
  )
})

test.concurrent('Left goes back to the question before, and what is typed searches a list', async () => {
  using home = new FirstStartHome()
  await using terminal = home.start({ places: atVendors() })
  await terminal.shows('> Example')
  terminal.press('oth')
  await terminal.shows(/Search: oth▏\n> Other +127\.0\.0\.1:1\n/)
  terminal.press(KEYS.enter)
  await terminal.shows('API key of Other')
  terminal.press(KEYS.left)
  await terminal.shows('> Example')
  terminal.press('nothing has this')
  await terminal.shows('None has it.')
  terminal.press(KEYS.escape)
  expect(await terminal.ended()).toMatchObject({ exitCode: 2 })
})

test.concurrent('an endpoint that cannot be reached is explained, and can be used without a check', async () => {
  using home = new FirstStartHome()
  await using terminal = home.start({ places: { vendors: [vendorAtPort(await freePort())] } })
  await terminal.shows('> Example')
  terminal.press(KEYS.enter)
  await enterKey(terminal, 'sk-good')
  await terminal.shows('Example does not answer: nothing listens there (ECONNREFUSED).')
  terminal.press(KEYS.down, KEYS.enter)
  await terminal.shows('Name of the model at Example')
  await terminal.say('gpt-4.1')
  await terminal.shows('gpt-4.1 of Example')
  terminal.press(KEYS.enter)
  await leave(terminal)
  expect(home.settings).toMatchObject({ model: 'gpt-4.1', api_key: 'sk-good' })
})

test.concurrent('a proxy that requests to models do not use is named when an endpoint cannot be reached', async () => {
  using home = new FirstStartHome()
  const env = { HTTPS_PROXY: 'http://proxy.example.com:3128' }
  await using terminal = home.start({ places: { vendors: [vendorAtPort(await freePort())] }, env })
  await terminal.shows('> Example')
  terminal.press(KEYS.enter)
  await enterKey(terminal, 'sk-good')
  await terminal.shows(/Requests to models do not use the proxy of\s+HTTPS_PROXY\./)
})

test.concurrent('a key of the environment is offered first, is not asked for, and stays out of the file', async () => {
  using home = new FirstStartHome()
  const other = { ...vendorAtPort(1, 'Other'), keyVariables: ['OTHER_API_KEY'] }
  const places = { vendors: [other, vendorAtPort(vendor.port)] }
  await using terminal = home.start({ places, env: { EXAMPLE_API_KEY: 'sk-good' } })
  await terminal.shows(/> Example +with the key of EXAMPLE_API_KEY\n +Other/)
  terminal.press(KEYS.enter)
  await terminal.shows('Which model of Example?')
  terminal.press(KEYS.enter)
  await terminal.shows('Then model and base_url are in')
  terminal.press(KEYS.enter)
  await leave(terminal)
  expect(home.settings).toEqual({ model: 'gpt-4.1', base_url: `http://127.0.0.1:${vendor.port}/v1` })
})

test.concurrent('blanks around a key of the environment do not belong to it, and one that cannot be sent is asked for', async () => {
  using home = new FirstStartHome()
  const other = { ...vendorAtPort(1, 'Other'), keyVariables: ['OTHER_API_KEY'] }
  const places = { vendors: [other, vendorAtPort(vendor.port)] }
  await using terminal = home.start({ places, env: { EXAMPLE_API_KEY: ' sk-good\n', OTHER_API_KEY: 'sk-…' } })
  await terminal.shows(/> Example +with the key of EXAMPLE_API_KEY\n +Other +127\.0\.0\.1/)
  terminal.press(KEYS.down, KEYS.enter)
  await terminal.shows('API key of Other')
  terminal.press(KEYS.left)
  await terminal.shows('Where is the model?')
  terminal.press(KEYS.enter)
  await terminal.shows('Which model of Example?')
  terminal.press(KEYS.escape)
  expect(await terminal.ended()).toMatchObject({ isRestored: true })
})

test.concurrent('another endpoint is entered as a URL, which is checked before it is asked', async () => {
  using home = new FirstStartHome()
  await using terminal = home.start()
  await terminal.shows('> Another endpoint')
  terminal.press(KEYS.enter)
  await terminal.shows('URL of the endpoint')
  await terminal.say('api.example.com')
  await terminal.shows('This is not an http or https URL')
  terminal.press('\x15')
  // A host alone means its usual path.
  await terminal.say(`http://127.0.0.1:${vendor.port}`)
  await terminal.shows(`127.0.0.1:${vendor.port} wants a key (401).`)
  terminal.press('sk-good', KEYS.enter)
  await terminal.shows('Which model of 127.0.0.1')
  terminal.press(KEYS.enter)
  await terminal.shows('Keep this')
  terminal.press(KEYS.enter)
  await leave(terminal)
  expect(home.settings).toMatchObject({ base_url: `http://127.0.0.1:${vendor.port}/v1`, api_key: 'sk-good' })
})

test.concurrent('for an endpoint that is set, only its key and its model are asked for', async () => {
  using home = new FirstStartHome()
  const url = `http://127.0.0.1:${vendor.port}/v1`
  await using terminal = home.start({ args: ['--base-url', url], places: onThisMachine() })
  await terminal.shows('wants a key (401).')
  expect(terminal.text).not.toContain('Ollama')
  terminal.press('sk-good', KEYS.enter)
  await terminal.shows('> gpt-4.1')
  terminal.press(KEYS.enter)
  await terminal.shows('Then model, base_url and api_key')
})

test.concurrent('a key that is set is tried at the vendor that is chosen, and no port of this machine gets it', async () => {
  using home = new FirstStartHome()
  await using local = await startModelServer(() => listOf('any'))
  const places = { ...atVendors(), localServers: [{ label: 'Ollama', port: local.port }] }
  await using terminal = home.start({ env: { LLM_API_KEY: 'sk-good' }, places })
  await terminal.shows(/> Example +with the key of LLM_API_KEY/)
  terminal.press(KEYS.enter)
  await terminal.shows('> gpt-4.1')
  terminal.press(KEYS.enter)
  await terminal.shows('Then model and base_url are in')
  expect(local.asked).toEqual([])
})

test.concurrent.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('%s at a question restores the terminal', async (signal, exitCode) => {
  using home = new FirstStartHome()
  await using terminal = home.start({ places: atVendors() })
  await terminal.shows('Where is the model?')
  process.kill(terminal.pid, signal)
  expect(await terminal.ended()).toEqual({ exitCode, isRestored: true })
})

test.concurrent('the file keeps its other fields and its form, and is closed to others, which is said', async () => {
  using home = new FirstStartHome()
  mkdirSync(dirname(home.settingsPath))
  const text = '{\n    "unknown": 1,\n    "chat": { "theme": "plain" }\n}\n'
  writeFileSync(home.settingsPath, text)
  chmodSync(home.settingsPath, 0o644)
  await using terminal = home.start({ places: onThisMachine() })
  await terminal.shows('> Ollama')
  terminal.press(KEYS.enter)
  await terminal.shows('Which model')
  terminal.press(KEYS.enter)
  await terminal.shows('Keep this')
  terminal.press(KEYS.enter)
  await terminal.shows(/Other users could read\s+[\S\n]+;\s+only\s+you\s+can\s+now\./)
  await leave(terminal)
  expect(home.mode).toBe('600')
  expect(readFileSync(home.settingsPath, 'utf8')).toMatch(
    /^\{\n {4}"unknown": 1,\n {4}"chat": \{\n {8}"theme": "plain"\n {4}\},\n {4}"model": "scripted",\n {4}"base_url": ".*"\n\}\n$/,
  )
})

test.concurrent('a key that the file has is not replaced, and the chat says that nothing is kept', async () => {
  using home = new FirstStartHome()
  mkdirSync(dirname(home.settingsPath))
  writeFileSync(home.settingsPath, '{"api_key":"sk-bad"}', { mode: 0o600 })
  await using terminal = home.start({ places: atVendors() })
  await terminal.shows('> Example')
  terminal.press(KEYS.enter)
  await terminal.shows(/Example refuses the key of api_key of\s+[\S\n]+\s+\(401\)/)
  terminal.press('sk-good', KEYS.enter)
  await terminal.shows('> gpt-4.1')
  terminal.press(KEYS.enter)
  await terminal.shows(/are not kept, and hold until the chat\s+ends:\s+[\S\n]+\s+has\s+another\s+api_key\./)
  await leave(terminal)
  expect(readFileSync(home.settingsPath, 'utf8')).toBe('{"api_key":"sk-bad"}')
})

test.concurrent('a key of another endpoint is not tried where the model is', async () => {
  using home = new FirstStartHome()
  mkdirSync(dirname(home.settingsPath))
  const text = JSON.stringify({ api_key: 'sk-good', base_url: `http://127.0.0.1:${vendor.port}/v1` })
  writeFileSync(home.settingsPath, text, { mode: 0o600 })
  const args = ['--model', 'gpt-4.1', '--base-url', 'https://api.openai.com/v1']
  await using terminal = home.start({ args, places: onThisMachine() })
  await terminal.shows(/agent-server needs a key for gpt-4\.1\.\s+API key of OpenAI/)
  terminal.press(KEYS.ctrlC)
  expect(await terminal.ended()).toEqual({ exitCode: 130, isRestored: true })
})
