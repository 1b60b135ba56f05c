/** The Python SDK in sdk/python: builds its wheel, and tests the installed wheel against the executable. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { builtExecutable } from '../built-executable.ts'
import type { Environment } from './toolchains.ts'

const SDK = join(import.meta.dirname, '../../sdk/python')
const STEP_MS = 20 * 60_000
/** Uses the environment, and not an isolated one: its versions are pinned. */
const PIP = ['-m', 'pip', '--disable-pip-version-check', '--quiet']

/** Returns the name of the wheel. The same sources give the same bytes. */
export async function buildWheel(env: Environment, directory: string): Promise<string> {
  const options = ['--no-deps', '--no-build-isolation', '--no-cache-dir', '--wheel-dir', directory]
  const reproducible = { ...env, SOURCE_DATE_EPOCH: '315532800', PYTHONDONTWRITEBYTECODE: '1' }
  await execa('python', [...PIP, 'wheel', ...options, SDK], { env: reproducible, stdin: 'ignore', timeout: STEP_MS })
  const wheel = readdirSync(directory).find((name) => name.endsWith('.whl'))
  if (wheel === undefined) throw new Error('pip has built no wheel of sdk/python.')
  return wheel
}

/** True if everything holds. `npm`: the folder with pyright; undefined if it is missing. `say` gets a line for each step. */
export async function checkPythonSdk(
  env: Environment,
  npm: string | undefined,
  work: string,
  say: (text: string) => void,
): Promise<boolean> {
  const wheels = join(work, 'wheels')
  const site = join(work, 'site')
  const wheel = await buildWheel(env, wheels)
  await execa('python', [...PIP, 'install', '--no-deps', '--target', site, join(wheels, wheel)], { env })
  const installed = {
    ...env,
    PYTHONPATH: site,
    PYTHONDONTWRITEBYTECODE: '1',
    AGENT_SERVER_BIN: process.env['AGENT_SERVER_BIN'] ?? builtExecutable(),
  }
  const cache = join(work, 'mypy')
  const steps: Readonly<Record<string, readonly string[]>> = {
    format: ['ruff', 'format', '--check', '--no-cache', '.'],
    lint: ['ruff', 'check', '--no-cache', '.'],
    mypy: ['mypy', '--cache-dir', cache, 'agent_server', 'tests', 'build_backend.py'],
    ...(npm !== undefined && { pyright: [join(npm, 'node_modules/.bin/pyright'), 'agent_server', 'tests'] }),
    // Starts it by its command: `python -m pytest` would import the sources, and not the wheel.
    tests: ['pytest', 'tests'],
  }
  let works = true
  for (const [name, [command = '', ...args]] of Object.entries(steps)) {
    const options = { cwd: SDK, env: installed, stdin: 'ignore', all: true, reject: false, timeout: STEP_MS } as const
    const { failed, all } = await execa(command, args, options)
    say(`the Python SDK (${wheel}), ${name}: ${failed ? `FAILED\n${all}` : 'works'}`)
    works &&= !failed
  }
  return works
}
