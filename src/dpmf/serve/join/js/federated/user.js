// A participant's side: ratings stay here, and what leaves is bounded, noisy and masked. As dpmf.federated.certified.user:
// whatever the recommender asks, every round of the agreement is answered once at most, with the noise that it requires.

import { makeKeys, openChannel } from "./channel.js";
import { maskStream } from "./masks.js";
import { answerBytes, readInquiry } from "./messages.js";
import { makeNoise } from "./noise.js";
import { maskBytes, masked } from "./ring.js";

/**
 * Return one's ratings as questions take them: of items of the catalogue, ascending and once each, on the scale.
 * @param {{position: number, rating: number}[]} entries
 */
export function ownRatings(entries, [lowest, highest], nItems) {
  const isRating = ({ position, rating }) => position >= 0 && position < nItems && Number.isFinite(rating);
  const byItem = new Map(entries.filter(isRating).toReversed().map(({ position, rating }) => [position, rating]));
  const items = Int32Array.from(byItem.keys()).sort();
  const clipped = (rating) => Math.fround(Math.min(Math.max(rating, lowest), highest));
  return { items, values: Float64Array.from(items, (item) => clipped(byItem.get(item))) };
}

/** Return {public, receive}; `receive` takes a sealed question, and returns {round, message}: the sealed answer. */
export async function makeUser({ agreement, own, recommender, thirdParty, account, noise, keys }) {
  const ours = keys ?? (await makeKeys());
  const asking = await openChannel(ours, recommender);
  const adding = await openChannel(ours, thirdParty);
  const draw = noise ?? makeNoise(agreement.nShares);
  let before = Promise.resolve();

  async function answer(message) {
    const { round, seed, told } = readInquiry(await asking.open(message), agreement);
    const { questions, ringBytes, bytesUp } = agreement.rounds[round];
    await account.begin(round, bytesUp); // on disk before anything is drawn; refuses a round that was begun before
    const numbers = new Float64Array(questions.reduce((total, one) => total + one.size, 0));
    let place = 0;
    for (const question of questions) {
      const part = question.answer(own, told);
      const shares = draw(question.size);
      for (let at = 0; at < question.size; at++) numbers[place + at] = part[at] + shares[at];
      place += question.size;
    }
    const packed = masked(numbers, await maskStream(seed, numbers.length * maskBytes(ringBytes)), ringBytes);
    return { round, message: await adding.seal(answerBytes(round, packed)) };
  }

  return {
    public: ours.public,
    receive(message) {
      const next = before.then(() => answer(message)); // one after the other, as they came
      before = next.catch(() => null);
      return next;
    },
  };
}
