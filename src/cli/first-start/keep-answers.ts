/** Asks whether the answers are kept in the settings file, and says whether they were. */
import { withTilde } from '../../config/paths.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { isPipe } from '../../files/small-file.ts'
import { UsageError } from '../command-line/usage-error.ts'
import type { ChosenModel } from '../settings/choose-model.ts'
import { keepSettings } from '../settings/keep-settings.ts'
import type { SettingsFile } from '../settings/settings-file.ts'
import type { Dialog } from './dialog.ts'

type KeptAnswers = Pick<ChosenModel, 'keepsKey' | 'notices'>

/** Writes nothing unless the person agrees. Rejects with `DialogLeft`. */
export async function keepAnswers(dialog: Dialog, file: SettingsFile, values: LlmConfig): Promise<KeptAnswers> {
  const { path } = file
  const why = whyNotKept(file, values)
  if (why !== undefined) return notKept(why)
  const fields = Object.keys(values)
  const index = await dialog.choose({
    title: 'Keep this for the next time?',
    text: `Then ${listOf(fields)} ${fields.length === 1 ? 'is' : 'are'} in ${withTilde(path)}, which only you can read.`,
    options: [
      { label: 'Yes', detail: '' },
      { label: 'No', detail: 'use it until the chat ends' },
    ],
    canGoBack: false,
  })
  if (index !== 0) return { keepsKey: false, notices: [] }
  try {
    const notice = await keepSettings(path, values)
    dialog.say(`Kept in ${withTilde(path)}.`)
    return { keepsKey: values.api_key !== undefined, notices: notice === undefined ? [] : [notice] }
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return notKept(error.message)
  }
}

const notKept = (why: string): KeptAnswers => ({
  keepsKey: false,
  notices: [`The model and its key are not kept, and hold until the chat ends: ${why}`],
})

/** What a person has written is not replaced: the file may serve another endpoint. */
function whyNotKept({ path, settings }: SettingsFile, values: LlmConfig): string | undefined {
  const givenConfig: LlmConfig = settings
  const fields = ['model', 'base_url', 'api_key'] as const
  const other = fields.find((field) => {
    const [before, now] = [givenConfig[field], values[field]]
    return before !== undefined && now !== undefined && before !== now
  })
  if (other !== undefined) return `${path} has another ${other}.`
  return isPipe(path) ? `${path} is a pipe.` : undefined
}

const listOf = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
