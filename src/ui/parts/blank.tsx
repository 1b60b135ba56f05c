/** A screen, or a part of one, that has nothing to show: what that means, and what one can do. */
import type { ComponentChildren } from 'preact'

type Props = { readonly text: string; readonly children?: ComponentChildren }

export function Blank({ text, children }: Props) {
  return (
    <div class="blank">
      <p class="lead">{text}</p>
      {children}
    </div>
  )
}
