"""Pairs of final answers, by hand: the same in other words, and a changed fact in nearly the same words.

The rules were made with the first half in view; the second half was written after them, and they stayed as they were.
"""

Pair = tuple[str, str]

SAME: tuple[Pair, ...] = (
    # support
    ("It is 28 days, says the handbook.", "According to the handbook, you get 28 days."),
    ("Your refund of $40 is on its way.", "We've issued the refund: 40.00 dollars."),
    ("You can return it within thirty days.", "Returns are accepted for 30 days."),
    ("Order #5512 ships on March 3.", "Your order 5512 will be shipped on 3 March."),
    ("I'm sorry, but this item is not refundable.", "Unfortunately that item can't be refunded."),
    ("Your request was denied because the item was opened.", "We had to reject the request: the item had been opened."),
    ("The parcel arrives Monday. Is there anything else I can help with?", "Your parcel will arrive on Monday."),
    ("Done! I cancelled the subscription.", "The subscription has been cancelled."),
    (
        "Your ticket A-1042 was escalated to a specialist.",
        "I have escalated ticket A-1042; a specialist will follow up.",
    ),
    ("Refunds take 5 business days.", "It takes five working days until the refund arrives."),
    ("Yes, you are eligible for a replacement.", "You qualify for a replacement, so yes."),
    ("The discount is 15%.", "You get 15 percent off as a discount."),
    ("Could you give me your order number?", "Which order is it? Please share the order number."),
    ("Please provide the email address on the account.", "I need your account's email address to continue."),
    ("I can't help with that request.", "I'm sorry, but I am unable to assist with this."),
    ("No, the warranty does not cover water damage.", "Water damage isn't covered by the warranty."),
    ("Your plan costs $1,200 per year.", "The yearly price of the plan is 1200 USD."),
    # code
    ("All 41 tests pass.", "The test suite is green: 41 tests passed."),
    (
        "Fixed the bug in src/cart.py by checking for None.",
        "The bug was a missing None check; I fixed it in src/cart.py.",
    ),
    ("The function get_total returns 42.", "42 is what get_total returns."),
    (
        "I renamed the variable and ran the tests; nothing failed.",
        "After renaming the variable, the tests ran without failures.",
    ),
    ("There are 3 failing tests in tests/test_api.py.", "tests/test_api.py has three failing tests."),
    ("Upgrade to v2.3.1 to fix the crash.", "The crash is fixed in 2.3.1, so upgrade."),
    ("1. Install the package\n2. Run make test", "- Install the package\n- Run make test"),
    # medicine
    ("Take 500 mg twice a day with food.", "The dose is 500 mg, two times daily, with food."),
    ("The scan shows no sign of a fracture.", "No fracture can be seen on the scan."),
    ("The result is negative: no infection was found.", "There is no infection; the result came back negative."),
    ("Avoid alcohol while taking this medicine.", "Do not drink alcohol while you take the medicine."),
    # travel
    ("Your flight LH 454 leaves at 14:30 from gate B12.", "Gate B12, departure 2:30 pm: flight LH 454."),
    ("The hotel is booked for 2 nights from 2026-05-04.", "I booked the hotel from May 4 for two nights."),
    ("The train takes 90 minutes.", "The train ride takes 1.5 hours."),
    ("A visa is not required for stays under 90 days.", "You don't need a visa if you stay less than 90 days."),
    # finance
    ("Revenue rose 12% to $3.4 million.", "Revenue was up 12 percent, reaching $3.4 million."),
    ("The balance is €1.250,00.", "Your account balance: 1250 euros."),
    (
        "The payment failed because of insufficient funds.",
        "Payment was unsuccessful: the account has insufficient funds.",
    ),
    ("Interest is 4.5% per year.", "The annual interest rate is 4.5 percent."),
    # ops
    ("The service is down since 09:14 because the disk is full.", "A full disk took the service down at 09:14."),
    ("Restarted pod api-7 and the error rate fell below 1%.", "After a restart of api-7 the error rate is under 1%."),
    ("CPU usage is at 95% on host db-2.", "Host db-2 shows 95 percent CPU usage."),
    ("I rolled back to release 118.", "Release 118 is live again after a rollback."),
    # law
    ("The tenant must give 3 months' notice.", "A notice of three months is required from the tenant."),
    ("The clause is not enforceable under the act.", "Under the act, this clause cannot be enforced."),
    # other languages, short and rough
    ("Sie haben 14 Tage Zeit für die Rückgabe.", "Die Rückgabe ist innerhalb von 14 Tagen möglich."),
    ("Le remboursement prend 5 jours.", "Comptez 5 jours pour le remboursement."),
    ("El pedido llega el 3 de marzo.", "Su pedido llegará el 3 de marzo."),
    ("order shipped, 2 day", "Your order has shipped and will take 2 days."),
    ("refund ok, 40 usd send", "The refund of $40 was sent."),
)

CHANGED: tuple[Pair, ...] = (
    # support
    ("It is 28 days, says the handbook.", "According to the handbook, you get 24 days."),
    ("Your refund of $40 is on its way.", "We've issued the refund: 400.00 dollars."),
    ("You can return it within thirty days.", "Returns are accepted for 13 days."),
    ("Order #5512 ships on March 3.", "Your order 5512 will be shipped on 5 March."),
    ("This item is refundable.", "Unfortunately that item can't be refunded."),
    ("Your request was approved.", "We had to reject the request: the item had been opened."),
    ("The parcel arrives Monday.", "Your parcel will arrive on Tuesday."),
    ("I cancelled the subscription.", "I could not cancel the subscription."),
    ("Your ticket A-1042 was escalated.", "I have escalated ticket A-1043."),
    ("Refunds take 5 business days.", "It takes ten working days until the refund arrives."),
    ("Yes, you are eligible for a replacement.", "No, you don't qualify for a replacement."),
    ("The discount is 15%.", "You get 50 percent off as a discount."),
    ("Could you give me your order number?", "Your order has been refunded."),
    ("Please provide the email address on the account.", "I have updated the email address on the account."),
    ("I can't help with that request.", "I have completed your request."),
    ("The warranty covers water damage.", "Water damage isn't covered by the warranty."),
    ("Your plan costs $1,200 per year.", "The yearly price of the plan is 1200 EUR."),
    # code
    ("All 41 tests pass.", "The test suite is red: 2 tests failed."),
    ("Fixed the bug in src/cart.py.", "I fixed the bug in src/order.py."),
    ("The function get_total returns 42.", "43 is what get_total returns."),
    ("Ran the tests; nothing failed.", "I ran the tests; they failed."),
    ("There are 3 failing tests in tests/test_api.py.", "tests/test_api.py has four failing tests."),
    ("Upgrade to v2.3.1 to fix the crash.", "The crash is fixed in 2.4.0, so upgrade."),
    # medicine
    ("Take 500 mg twice a day with food.", "The dose is 50 mg, two times daily, with food."),
    ("The scan shows no sign of a fracture.", "The scan shows a fracture."),
    ("The result is negative.", "The result is positive."),
    ("The tumour is benign.", "The tumour is malignant."),
    ("You should take this medicine with alcohol.", "You should not take this medicine with alcohol."),
    # travel
    ("Your flight LH 454 leaves at 14:30 from gate B12.", "Gate B14, departure 2:30 pm: flight LH 454."),
    ("The hotel is booked for 2 nights from 2026-05-04.", "I booked the hotel from May 6 for two nights."),
    ("The train takes 90 minutes.", "The train ride takes 2.5 hours."),
    ("A visa is required for stays under 90 days.", "You don't need a visa if you stay less than 90 days."),
    # finance
    ("Revenue rose 12% to $3.4 million.", "Revenue fell 12 percent, to $3.4 million."),
    ("The balance is €1.250,00.", "Your account balance: 12.50 euros."),
    ("The payment went through.", "Payment was unsuccessful: insufficient funds."),
    ("Interest is 4.5% per year.", "The annual interest rate is 5.4 percent."),
    # ops
    ("The service is down since 09:14.", "The service is down since 10:14."),
    ("Restarted pod api-7.", "I restarted pod api-9."),
    ("CPU usage is at 95% on host db-2.", "CPU usage is at 95% on host db-3."),
    ("I rolled back to release 118.", "Release 181 is live again after a rollback."),
    ("The backup succeeded.", "The backup failed."),
    # law
    ("The tenant must give 3 months' notice.", "A notice of six months is required from the tenant."),
    ("The clause is enforceable under the act.", "Under the act, this clause cannot be enforced."),
    # other languages, and answers about something else
    ("Sie haben 14 Tage Zeit für die Rückgabe.", "Die Rückgabe ist innerhalb von 30 Tagen möglich."),
    ("Die Rückgabe ist möglich.", "Die Rückgabe ist leider nicht möglich."),
    ("El pedido llega el 3 de marzo.", "Su pedido llegará el 8 de marzo."),
    ("You have 30 days to return it.", "Vous avez 30 jours pour le retourner."),
    ("The capital of France is Paris.", "I have sent the invoice to your accountant."),
    ("billing", "shipping"),
)
