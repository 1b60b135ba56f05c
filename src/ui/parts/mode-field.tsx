/** The choice of a permission mode. */
import { texts } from '../state/preferences.ts'

/** The modes that a person chooses; `callback` needs a program, and is shown where it is set. */
const MODES = ['default', 'accept_edits', 'plan', 'deny', 'bypass'] as const
type Mode = (typeof MODES)[number] | 'callback'

const NAME = 'permission_mode'

export function ModeField({ chosen, isLocked = false }: { readonly chosen: string; readonly isLocked?: boolean }) {
  const { mode, modes } = texts.value
  const names: readonly Mode[] = chosen === 'callback' ? [...MODES, 'callback'] : MODES
  return (
    <label class="field">
      {mode}
      <select name={NAME} defaultValue={chosen} disabled={isLocked}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}: {modes[name]}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Undefined if the field is locked. */
export function modeIn(form: FormData): Mode | undefined {
  const value = form.get(NAME)
  return value === 'callback' ? value : MODES.find((name) => name === value)
}
