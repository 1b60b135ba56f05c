/** Makes the code caches of the chunks, by what a server does from its start to the end of a first run. */
import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { DEMO_REQUEST, DEMO_SCRIPT } from '../../src/cli/demo/demo-script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { NODE_FLAGS } from '../../src/process-settings.ts'
import { PARTS } from './bundle.ts'
import type { ChunkFiles } from './load-chunks.ts'

/** A start without them takes several times as long. */
const NEEDED = ['main.js', 'app.js']

/** Returns the files of all chunks. A chunk that is not used by then has no code cache: V8 compiles it when it is. */
export async function compile(chunks: string): Promise<ChunkFiles[]> {
  const caches = join(PARTS, 'caches')
  mkdirSync(caches)
  await using model = await startScriptedModel(DEMO_SCRIPT)
  await serveOnce(chunks, caches)
  await runOnce(chunks, caches, model.baseUrl)
  const missing = NEEDED.filter((name) => !existsSync(join(caches, name)))
  if (missing.length > 0) throw new Error(`There is no code cache of ${missing.join(' and ')}.`)
  return filesOf(chunks, caches)
}

/** Returns the files, without `caches` for another platform: V8 takes a code cache only where it was made. */
export function filesOf(chunks: string, caches?: string): ChunkFiles[] {
  return readdirSync(chunks).map((name) => {
    const cache = caches === undefined ? undefined : join(caches, name)
    return { name, source: join(chunks, name), cache: cache !== undefined && existsSync(cache) ? cache : undefined }
  })
}

/** Caches only what the start needs: more functions would make each start slower. */
async function serveOnce(chunks: string, caches: string): Promise<void> {
  const child = forkBundle(chunks, caches, ['serve', '--generate-key', '--port', '0', '--log-format', 'json'])
  child.stderr!.pipe(process.stderr)
  const ended = once(child, 'exit')
  for await (const line of createInterface(child.stdout!)) {
    const { msg, url } = JSON.parse(line) as { msg: string; url?: string }
    if (msg !== 'ready') continue
    await fetch(`${url}/alive`)
    child.send('write')
    child.once('disconnect', () => child.kill('SIGTERM'))
  }
  await ended
}

/** The catalogue of models is an asset, which only the executable has: nothing is looked up in it. */
const KNOWN_MODEL = {
  LLM_CONTEXT_WINDOW: '100000',
  LLM_INPUT_COST_PER_TOKEN: '0',
  LLM_OUTPUT_COST_PER_TOKEN: '0',
}

/** Loads what the first run of an agent loads, and the command line. */
async function runOnce(chunks: string, caches: string, modelUrl: string): Promise<void> {
  const child = forkBundle(chunks, caches, ['--no-tui', '--permission-mode', 'bypass', DEMO_REQUEST], {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: modelUrl,
    LLM_API_KEY: 'key-of-the-build',
    ...KNOWN_MODEL,
  })
  child.stdout!.resume()
  const [said, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit') as Promise<[number | null]>])
  if (code !== 0) throw new Error(`The run at build time ended with exit code ${code}.\n${said}`)
}

function forkBundle(
  chunks: string,
  caches: string,
  args: readonly string[],
  settings: Record<string, string> = {},
): ChildProcess {
  const home = join(PARTS, 'home')
  const work = join(home, 'work')
  mkdirSync(work, { recursive: true })
  return fork(join(import.meta.dirname, 'code-cache.ts'), [chunks, caches, ...args], {
    cwd: work,
    execArgv: [...NODE_FLAGS],
    env: { PATH: process.env['PATH'], HOME: home, OPENHANDS_DATA_DIR: join(home, 'data'), ...settings },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
}
