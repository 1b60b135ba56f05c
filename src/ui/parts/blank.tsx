/** A screen, or a part of one, that has nothing to show: what that means, and what one can do. */
import type { ComponentChildren } from 'preact'

type Props = { readonly text: string; readonly isFault?: boolean; readonly children?: ComponentChildren }

export function Blank({ text, isFault = false, children }: Props) {
  return (
    <div class={isFault ? 'blank fault' : 'blank'} role={isFault ? 'alert' : undefined}>
      <p class="lead">{text}</p>
      {children}
    </div>
  )
}
