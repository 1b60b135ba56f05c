/** What a person can choose for this page. */
import { attempt, notify } from '../parts/notices.tsx'
import type { Signal } from '@preact/signals'
import {
  hidesContent,
  language,
  LANGUAGES,
  look,
  LOOKS,
  notifications,
  singleKeys,
  texts,
} from '../state/preferences.ts'
import type { PageLanguage } from '../state/preferences.ts'
import { addressOf } from '../state/route.ts'
import { logOut, session } from '../state/session.ts'
import { visible } from '../text/visible.ts'

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table
const languages = Object.keys(LANGUAGES) as PageLanguage[]

export function Preferences() {
  const {
    settings,
    language: languageText,
    look: lookText,
    looks,
    logOut: logOutText,
    loggedInAs,
    masterKey,
  } = texts.value
  const { me } = session.value ?? {}
  return (
    <section class="page">
      <h1>{settings}</h1>
      <div class="narrow">
        <label class="field">
          {languageText}
          <select
            value={language.value}
            onChange={({ currentTarget }) =>
              (language.value = languages.find((name) => name === currentTarget.value) ?? 'en')
            }
          >
            {languages.map((name) => (
              <option key={name} value={name}>
                {LANGUAGES[name]}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          {lookText}
          <select
            value={look.value}
            onChange={({ currentTarget }) =>
              (look.value = LOOKS.find((name) => name === currentTarget.value) ?? 'system')
            }
          >
            {LOOKS.map((name) => (
              <option key={name} value={name}>
                {looks[name]}
              </option>
            ))}
          </select>
        </label>
        <Switch of={singleKeys} label={texts.value.singleKeys} />
        <Switch of={notifications} label={texts.value.notifications} onTurn={() => attempt(askToNotify)} />
        <Switch of={hidesContent} label={texts.value.hideContent} />
        {me?.name !== undefined && <p class="quiet">{loggedInAs(visible(me.name), me.scopes.join(', '))}</p>}
        {me?.kind === 'master' && (
          <p class="quiet">
            {masterKey} <a href={addressOf('server')}>{texts.value.apiKeys}</a>
          </p>
        )}
        <button type="button" onClick={() => attempt(logOut)}>
          {logOutText}
        </button>
      </div>
    </section>
  )
}

/** Browsers have no notifications for a page over http from another computer. */
async function askToNotify(): Promise<void> {
  const permission = 'Notification' in globalThis ? await Notification.requestPermission() : 'denied'
  if (permission === 'granted') return
  notifications.value = 'off'
  notify(texts.value.notAllowed, { isFault: true })
}

function Switch({
  of,
  label,
  onTurn,
}: {
  readonly of: Signal<'on' | 'off'>
  readonly label: string
  readonly onTurn?: () => void
}) {
  const turn = (isOn: boolean) => {
    of.value = isOn ? 'on' : 'off'
    if (isOn) onTurn?.()
  }
  return (
    <label class="option">
      <input
        type="checkbox"
        checked={of.value === 'on'}
        onChange={({ currentTarget }) => turn(currentTarget.checked)}
      />{' '}
      {label}
    </label>
  )
}
