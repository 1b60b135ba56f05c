/** Reads the options that are settings of a conversation, and says what each of them does to a resumed one. */
import type { z } from 'zod'
import type { CreateConversation } from '../../contract/conversation.ts'
import { RunRequest } from '../../contract/run.ts'
import type { OptionSetting, SettingOption } from '../../contract/setting-options.ts'
import { OPTION_SETTINGS, SETTING_OPTIONS } from '../../contract/setting-options.ts'
import { SETTINGS } from '../../contract/settings.ts'
import { withOwnFields } from '../command-line/other-names.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { readJsonFile } from './settings-file.ts'

export type GivenSettings = Readonly<Partial<Pick<CreateConversation, OptionSetting>>>

/** The settings that a run can have instead of those of its conversation. */
export type RunSetting = OptionSetting & keyof RunRequest

/**
 * `run`: without the chat it holds for the runs of the command, and changes nothing for the next. `changed`: the conversation
 * has it from now on. `refused`: a conversation keeps what it was created with.
 */
export type EffectOnResumed = 'run' | 'changed' | 'refused'

export function effectOnResumed(setting: OptionSetting): EffectOnResumed {
  if (Object.hasOwn(RunRequest.shape, setting)) return 'run'
  return 'update' in SETTINGS[setting] ? 'changed' : 'refused'
}

/** `texts`: the values of the options, by setting. Throws a `UsageError` for the first that is wrong, or cannot be changed. */
export async function readGivenSettings(
  texts: Readonly<Partial<Record<OptionSetting, readonly string[]>>>,
  { isResumed, signal }: { readonly isResumed: boolean; readonly signal: AbortSignal },
): Promise<GivenSettings> {
  const values: [OptionSetting, unknown][] = [] // their schemas have accepted them
  for (const setting of OPTION_SETTINGS) {
    const givenTexts = texts[setting]
    if (givenTexts === undefined) continue
    if (isResumed && effectOnResumed(setting) === 'refused') throw keepsIts(SETTING_OPTIONS[setting].name)
    values.push([setting, await valueOf(setting, givenTexts, signal)])
  }
  return Object.fromEntries(values)
}

export const keepsIts = (option: string): UsageError =>
  new UsageError(
    `--${option} cannot change a resumed conversation, which keeps what it was created with; leave it out, or begin a new conversation.`,
  )

/** Returns what holds for the runs of the command, and what changes the conversation. */
export function splitByEffect(givenSettings: GivenSettings): Record<'runs' | 'changes', GivenSettings> {
  const those = (isForRuns: boolean): GivenSettings =>
    Object.fromEntries(
      OPTION_SETTINGS.filter((each) => isForRuns === (effectOnResumed(each) === 'run')).map((each) => [
        each,
        givenSettings[each],
      ]),
    )
  return { runs: those(true), changes: those(false) }
}

async function valueOf(setting: OptionSetting, texts: readonly string[], signal: AbortSignal): Promise<unknown> {
  const { name } = SETTING_OPTIONS[setting]
  const schema = SETTINGS[setting].create
  const values = await candidates(SETTING_OPTIONS[setting], texts, signal)
  const results = values.map((value) => schema.safeParse(setting === 'agents' ? withOwnFields(value) : value))
  const acceptedResult = results.find(({ success }) => success)
  if (acceptedResult) return acceptedResult.data
  const [issue] = results.at(-1)?.error?.issues ?? []
  const field = issue?.path.filter((key) => typeof key === 'string').join('.') ?? ''
  throw new UsageError(`--${name} is not valid: ${field && `${field}: `}${issue ? reasonOf(issue) : 'unknown'}.`)
}

/** The reason for a name that is refused is inside the issue. */
const reasonOf = (issue: z.core.$ZodIssue): string =>
  (issue.code === 'invalid_key' ? issue.issues[0] : undefined)?.message ?? issue.message

/** Returns what the text can stand for: the first one counts that the schema accepts. */
async function candidates(
  { name, form }: SettingOption,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<unknown[]> {
  const [text = ''] = texts
  switch (form) {
    case 'texts':
      return [texts]
    case 'text':
      return [text]
    case 'flag':
      return [text === 'true']
    case 'switch':
      return [text === 'true' || (text === 'false' ? false : text)]
    case 'number':
      return [Number(text)]
    case 'names':
      return [
        text.trim(),
        text
          .split(',')
          .map((name) => name.trim())
          .filter(Boolean),
      ]
    case 'json':
      return [/^\s*[[{]/.test(text) ? parseJson(name, text) : await readJsonFile(text, signal)]
  }
}

function parseJson(option: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new UsageError(`--${option} is not valid JSON.`, { cause })
  }
}
