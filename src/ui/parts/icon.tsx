/** Icons of one stroke on a grid of 16 px, in the colour of the text around them. */
const PATHS = {
  inbox: 'M2.5 9.5 4.5 3h7l2 6.5V13h-11zM2.5 9.5h3.3l1 1.7h2.4l1-1.7h3.3',
  list: 'M6 4h7.5M6 8h7.5M6 12h7.5M2.7 4h.6M2.7 8h.6M2.7 12h.6',
  plus: 'M8 3v10M3 8h10',
  bars: 'M3 13.5v-4M8 13.5v-11M13 13.5v-7',
  arrow: 'M4 12 12 4M6 4h6v6',
  server: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.6M5 11h.6',
  sliders:
    'M2 5h6M12 5h2M2 11h2M8 11h6M10 3.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6M6 9.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.3 10.3l3.2 3.2',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  )
}
