/** `agent-server doctor`: checks what agents of this machine need, and says what to do about what is missing. */
import { readConfig, wantsColor } from '../../config/config.ts'
import { createKeyCommand } from '../../config/model-keys.ts'
import { leaveProject } from '../../config/leave-project.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { RunSettings } from '../settings/run-settings.ts'
import { readRunSettings } from '../settings/run-settings.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import { oneLine } from '../../telemetry/plain-text.ts'
import { say } from '../terminal/terminal.ts'
import type { Finding } from './check.ts'
import { bad, good } from './check.ts'
import { checkGit, checkPort, checkRipgrep, checkSandbox } from './check-machine.ts'
import { checkModel } from './check-model.ts'

/** A configuration needs one. Nothing listens with it. */
const NO_KEY = 'doctor-'.repeat(4)

/** Returns the exit code: 1 if agents cannot work. */
export async function doctor(invocation: RunInvocation): Promise<number> {
  const directory = process.cwd()
  const { signal } = new AbortController()
  // Only this reads the current directory: a `.env` in it can belong to the project of somebody else.
  const settings = await readRunSettings(invocation, signal).catch(asFinding)
  const dataDir = await leaveProject({ createsIt: true, signal })
  const config = readConfig({ OPENHANDS_DATA_DIR: dataDir, OPENHANDS_MASTER_KEY: NO_KEY })
  const checks: Readonly<Record<string, () => Promise<Finding> | Finding>> = {
    data: () => good(dataDir),
    sandbox: () => checkSandbox(config),
    git: () => checkGit(config, directory),
    ripgrep: () => checkRipgrep(config),
    port: () => checkPort(config),
    model: () => ('state' in settings ? settings : checkModelOf(settings).catch(asFinding)),
  }
  let isBad = false
  for (const [name, check] of Object.entries(checks)) {
    const finding = await check()
    isBad ||= finding.state === 'bad'
    say(lineOf(name, finding))
  }
  return isBad ? 1 : 0
}

/** A command runs as before a request. */
async function checkModelOf({ conversation: { llm }, names, keyCommand }: RunSettings): Promise<Finding> {
  const name = names['llm_config.api_key']
  if (keyCommand === undefined) return await checkModel(llm, name)
  const api_key = await createKeyCommand(keyCommand).key(new AbortController().signal)
  return await checkModel({ ...llm, api_key }, name)
}

function asFinding(error: unknown): Finding {
  if (error instanceof UsageError || error instanceof LlmError) return bad(error.message.replace(/\.$/, ''))
  throw error
}

const MARKS = { good: ['ok  ', 32], weak: ['warn', 33], bad: ['fail', 31] } as const
/** Columns of the longest name. */
const NAME_WIDTH = 8

function lineOf(name: string, { state, text, fix }: Finding): string {
  const [mark, color] = MARKS[state]
  const shownMark = wantsColor() ? `\u001B[${color}m${mark}\u001B[39m` : mark
  const advice = fix === undefined ? '' : `\n${' '.repeat(NAME_WIDTH + 6)}${oneLine(fix)}`
  return `${shownMark} ${name.padEnd(NAME_WIDTH)} ${oneLine(text)}${advice}\n`
}
