// What decides the order of somebody's list, as dpmf.model.person says it (`Person.ordered_by`).

/**
 * Return "pairs" or "factors" if it is somebody's own taste; "ratings", how well everybody likes items, or "popularity" if it
 * is the same for everybody; and "nothing" if it is noise, or the order of the catalogue.
 * @param {object} model from `modelOf`
 * @param {object|null} person from `foldIn`
 * @param {object|null} owner from `ownerOf`
 */
export function orderedBy(model, person, owner) {
  const { ranking, predicts, implicit, V, c } = model;
  if (ranking) {
    if (owner.items.length) return "pairs";
  } else if (tastesOf(model) && person.factors.some((factor) => factor !== 0)) {
    return "factors";
  } else if (predicts && !implicit && differ(c)) {
    return model.learnt?.rated === 0 ? "nothing" : "ratings";
  }
  const orders = ranking ? ranking.items.length > 0 || differ(ranking.popularity) : V.some((factor) => factor !== 0) || differ(c);
  return model.learnt?.popular === 0 || !orders ? "nothing" : "popularity";
}

/** Return how many directions of taste stand out from the noise, by the record of the run; without one, whether there are any. */
function tastesOf({ learnt, V }) {
  return learnt ? learnt.factors + (learnt.leanings ?? 0) + (learnt.traits ?? 0) : Number(V.some((factor) => factor !== 0));
}

const differ = (numbers) => numbers.some((one) => one !== numbers[0]);
