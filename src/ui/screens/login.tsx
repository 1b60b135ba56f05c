/** The form that the page begins with. */
import { useState } from 'preact/hooks'
import { textIn } from '../parts/fields.ts'
import { texts } from '../state/preferences.ts'
import { hasEnded, logIn, messageOf } from '../state/session.ts'

export function Login({ fault: first }: { readonly fault: string | undefined }) {
  const { logIn: label, key, keyHint, loginEnded, readOnly, user } = texts.value
  const [fault, setFault] = useState(first)
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    setBusy(true)
    setFault(undefined)
    try {
      const form = new FormData(event.currentTarget)
      await logIn({ key: textIn(form, 'password') }, form.get('reader') !== null)
    } catch (error) {
      setFault(messageOf(error))
      setBusy(false)
    }
  }
  return (
    <main class="login">
      <h1>agent-server</h1>
      <form onSubmit={(event) => void submit(event)}>
        <label class="field">
          {user}
          <input name="username" autocomplete="username" value="agent-server" readOnly />
        </label>
        <label class="field">
          {key}
          <input name="password" type="password" autocomplete="current-password" required autoFocus />
        </label>
        <label class="option">
          <input type="checkbox" name="reader" /> {readOnly}
        </label>
        <p class="quiet">{keyHint}</p>
        {hasEnded.value && !fault && <p role="status">{loginEnded}</p>}
        {fault && (
          <p class="fault" role="alert">
            {fault}
          </p>
        )}
        <button type="submit" class="primary" disabled={isBusy}>
          {label}
        </button>
      </form>
    </main>
  )
}
