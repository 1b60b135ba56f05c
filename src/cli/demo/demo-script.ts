/** The demo's request, and the script of its stand-in model. Its commands are really executed. */
import type { ScriptFile } from '../../llm/scripted/script.ts'

export const DEMO_REQUEST =
  'Write a script total.sh that adds up the amounts in a CSV file, try it on some sample data, and make sure that it works.'

const MAKE = `cat > sales.csv <<'EOF'
city,amount
Lisbon,120
Nairobi,75
Osaka,310
EOF
cat > total.sh <<'EOF'
#!/usr/bin/env bash
set -euo pipefail
total=0
while IFS=, read -r city amount; do
  total=$((total + amout))
done < <(tail -n +2 "$1")
echo "total: $total"
EOF
chmod +x total.sh && ls -l`

export const DEMO_SCRIPT: ScriptFile = {
  replies: [
    {
      turns: [
        {
          text: 'I will make some sample data and a first version of the script.',
          calls: [{ name: 'Bash', arguments: { command: MAKE } }],
          chunk_delay_ms: 15,
        },
        {
          text: 'Now let me run it.',
          calls: [{ name: 'Bash', arguments: { command: './total.sh sales.csv' } }],
          chunk_delay_ms: 15,
        },
        {
          text: 'Line 5 reads a variable that does not exist: I misspelled `amount`. I will fix that and run it again.',
          calls: [
            { name: 'Bash', arguments: { command: "sed -i 's/amout/amount/' total.sh && ./total.sh sales.csv" } },
          ],
          chunk_delay_ms: 15,
        },
        {
          text: 'It prints a total now. I will check the sum with another program.',
          calls: [
            { name: 'Bash', arguments: { command: "awk -F, 'NR > 1 { sum += $2 } END { print sum }' sales.csv" } },
          ],
          chunk_delay_ms: 15,
        },
        {
          text: 'total.sh adds up the second column of the CSV file it is given. Its first version had a misspelled variable; with that fixed, it and awk come to the same sum for the sample data, 505.',
          chunk_delay_ms: 15,
        },
      ],
    },
  ],
}
