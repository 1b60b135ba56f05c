/** What the result of a call says: a command that ended with a code other than 0 has failed, too. Pure. */
import { fieldsOfInput } from '../../contract/events/call-title.ts'
import type { Call } from './items.ts'

export function exitCodeOf(result: Call['result']): number | undefined {
  const code = fieldsOfInput(result?.output)['exit_code']
  return typeof code === 'number' ? code : undefined
}

export const hasCallFailed = (result: Call['result']): boolean =>
  (result?.is_error ?? false) || (exitCodeOf(result) ?? 0) !== 0
