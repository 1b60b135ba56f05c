/** A button that starts something: once, however often somebody clicks before that has ended. */
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { attempt } from './notices.tsx'

type Props = {
  readonly act: () => Promise<unknown>
  readonly class?: string
  /** Escape presses it. */
  readonly 'data-escape'?: boolean
  readonly children: ComponentChildren
}

/** The button is not `disabled` while the action runs: that would take the focus away from people who use the keyboard. */
export function Action({ act, children, ...attributes }: Props) {
  const isActive = useRef(false)
  const [isBusy, setBusy] = useState(false)
  const show = (value: boolean) => {
    isActive.current = value
    setBusy(value)
  }
  const start = async () => {
    show(true)
    try {
      await act()
    } finally {
      show(false)
    }
  }
  return (
    <button
      type="button"
      aria-disabled={isBusy}
      // The second click of a double click belongs to the first one, however fast the server was.
      onClick={({ detail }) => detail < 2 && !isActive.current && attempt(start)}
      {...attributes}
    >
      {children}
    </button>
  )
}
