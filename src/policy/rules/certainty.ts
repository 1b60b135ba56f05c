/** Whether a rule matches something that is not wholly known: `maybe` if it depends on what is not known. */
export type Certainty = 'yes' | 'maybe' | 'no'

export function strongest(each: Iterable<Certainty>): Certainty {
  let foundCertainty: Certainty = 'no'
  for (const one of each) {
    if (one === 'yes') return 'yes'
    if (one === 'maybe') foundCertainty = 'maybe'
  }
  return foundCertainty
}
